"""Write a small network, or compute its answers.

python3 network.py FILE                       writes three layers of 1024 with fixed weights
python3 network.py FILE THREADS SPINNING      prints the mean of each of 3,000 answers
"""

import sys

import numpy as np

SIZE, LAYERS, ANSWERS = 1024, 3, 3000


def write(path: str) -> None:
    """Write the network to a file."""
    from onnx import TensorProto, helper, numpy_helper, save

    random = np.random.default_rng(1)
    nodes, weights = [], []
    for layer in range(LAYERS):
        name = f"weights-{layer}"
        values = random.normal(0, SIZE**-0.5, (SIZE, SIZE)).astype(np.float32)
        weights.append(numpy_helper.from_array(values, name))
        nodes.append(helper.make_node("MatMul", [f"x{layer}", name], [f"y{layer}"]))
        nodes.append(helper.make_node("Relu", [f"y{layer}"], [f"x{layer + 1}"]))
    ends = [helper.make_tensor_value_info(f"x{end}", TensorProto.FLOAT, [1, SIZE]) for end in (0, LAYERS)]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def answers(path: str, threads: int, spinning: str) -> None:
    """Print the mean of each answer."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", spinning)
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(2)
    for _ in range(ANSWERS):
        [found] = session.run(None, {"x0": random.normal(size=(1, SIZE)).astype(np.float32)})
        print(f"{float(found.mean()):.6f}")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write(sys.argv[1])
    else:
        answers(sys.argv[1], int(sys.argv[2]), sys.argv[3])
