"""Components as messages for the service."""

from trimtab_agent._gen import agent_pb2, tuning_pb2
from trimtab_components.schema import Choices, Component, Parameter, Range, Scalar


def of_component(component: Component) -> agent_pb2.Component:
    """Return a component's name, digest and space as a message. It contains no commands."""
    return agent_pb2.Component(
        name=component.name,
        digest=component.digest,
        applications=list(component.applications),
        description=component.description,
        space=[of_parameter(parameter) for parameter in component.parameters.values()],
        metrics=list(component.metrics),
        file_digest=component.file_digest,
    )


def of_parameter(parameter: Parameter) -> tuning_pb2.Parameter:
    """Return a parameter with its range, default and condition as a message."""
    message = tuning_pb2.Parameter(name=parameter.name, default=of_value(parameter.default), unit=parameter.unit)
    domain = parameter.domain
    if isinstance(domain, Range) and domain.kind == "int":
        step = None if domain.step is None else int(domain.step)
        message.integer.CopyFrom(
            tuning_pb2.Parameter.IntRange(
                min=int(domain.min), max=int(domain.max), log=domain.log, step=step, factor=domain.factor
            )
        )
    elif isinstance(domain, Range):
        message.float.CopyFrom(
            tuning_pb2.Parameter.FloatRange(
                min=domain.min, max=domain.max, log=domain.log, step=domain.step, factor=domain.factor
            )
        )
    elif isinstance(domain, Choices):
        values = tuning_pb2.Values(values=[of_value(value) for value in domain.values])
        (message.ordinal if domain.ordered else message.categorical).CopyFrom(values)
    else:
        message.boolean.SetInParent()
    if parameter.condition:
        message.condition.parent = parameter.condition.parent
        message.condition.values.extend(of_value(value) for value in parameter.condition.values)
    return message


def of_value(value: Scalar) -> tuning_pb2.Value:
    """Return a value as a message."""
    if isinstance(value, bool):
        return tuning_pb2.Value(flag=value)
    if isinstance(value, int):
        return tuning_pb2.Value(integer=value)
    return tuning_pb2.Value(number=value) if isinstance(value, float) else tuning_pb2.Value(text=value)


def to_value(message: tuning_pb2.Value) -> Scalar:
    """Return the value in a message. An empty message gives "", which the parameter's check then refuses."""
    kind = message.WhichOneof("kind")
    value: Scalar = getattr(message, kind) if kind else ""
    return value
