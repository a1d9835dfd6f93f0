"""Calls that create, find, list and delete studies."""

import threading
import uuid
from collections.abc import Iterator, Sequence

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.connection.transport import Transport
from trimtab._internal.logger import Logger
from trimtab._internal.messages.spec import from_spec, to_spec
from trimtab._internal.messages.status import to_study_states
from trimtab._internal.study.held_trials import HeldTrials
from trimtab.spec import StudySpec, StudyState

logger = Logger("trimtab")

PAGE_SIZE = 200


class StudyCalls:
    """The bodies of a client's methods about studies, and the trials that it holds in each. Thread-safe."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._stub = transport.stub
        self._held: dict[tuple[str, str], HeldTrials] = {}
        self._held_guard = threading.Lock()

    def create(self, name: str, spec: StudySpec, load_if_exists: bool) -> pb.Study:
        request = pb.CreateStudyRequest(
            name=name, spec=to_spec(spec), load_if_exists=load_if_exists, request_id=uuid.uuid4().hex
        )
        study = self._transport.call(self._stub.CreateStudy, request)
        if load_if_exists and (differences := spec.differences(from_spec(study.spec))):
            logger.warning(
                "the study exists and keeps its own settings", study=name, differences="; ".join(differences)
            )
        return study

    def parse_file(self, text: str, name: str) -> tuple[str | None, StudySpec]:
        request = pb.ParseStudyFileRequest(text=text, name=name)
        answer = self._transport.call(self._stub.ParseStudyFile, request)
        return answer.name or None, from_spec(answer.spec)

    def get(self, name: str) -> pb.Study:
        return self._transport.call(self._stub.GetStudy, pb.GetStudyRequest(name=name))

    def list(self, states: Sequence[StudyState | str], name_prefix: str, component: str) -> Iterator[pb.Study]:
        request = pb.ListStudiesRequest(
            page_size=PAGE_SIZE, states=to_study_states(states), name_prefix=name_prefix, component=component
        )
        while True:
            page = self._transport.call(self._stub.ListStudies, request)
            yield from page.studies
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def delete(self, name: str) -> None:
        self._transport.call(self._stub.DeleteStudy, pb.DeleteStudyRequest(name=name))
        with self._held_guard:
            for key in [key for key in self._held if key[0] == name]:
                del self._held[key]

    def held(self, study: str, client_id: str) -> HeldTrials:
        """Return the trials that a client_id holds in a study: the same object for all users of this client."""
        with self._held_guard:
            if (study, client_id) not in self._held:
                self._held[study, client_id] = HeldTrials(self._transport, study, client_id)
            return self._held[study, client_id]
