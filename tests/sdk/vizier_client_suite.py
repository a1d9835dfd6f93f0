"""The client test suite of OSS Vizier against an endpoint; it runs in an environment of its own: HOST:PORT OWNER."""

import sys

from absl.testing import absltest
from vizier.client import client_abc_testing
from vizier.service import clients
from vizier.service import pyvizier as vz

ADDRESS, OWNER = sys.argv[1:3]


class SuiteTest(client_abc_testing.TestCase[clients.Study]):  # type: ignore[misc]  # it has no types here
    """All cases of the suite, and its example of a whole search."""

    def create_study(
        self, study_config: vz.ProblemStatement, name: str = "", study_id: str = "", algorithm: str = "RANDOM_SEARCH"
    ) -> clients.Study:
        config = vz.StudyConfig.from_problem(study_config)
        config.algorithm = algorithm
        return clients.Study.from_study_config(config, owner=OWNER, study_id=name or study_id)

    def test_e2e_tuning(self) -> None:
        self.assertPassesE2ETuning()

    def test_e2e_tuning_of_two_objectives(self) -> None:
        self.assertPassesE2ETuning(multi_objective=True)

    def test_e2e_tuning_with_early_stopping(self) -> None:
        def create(problem: vz.ProblemStatement) -> clients.Study:
            config = vz.StudyConfig.from_problem(problem)
            config.algorithm = "RANDOM_SEARCH"
            config.automated_stopping_config = vz.AutomatedStoppingConfig.default_stopping_spec()
            return clients.Study.from_study_config(config, owner=OWNER, study_id=self.id())

        self.assertPassesE2ETuning(study_factory=create)


if __name__ == "__main__":
    clients.environment_variables.server_endpoint = ADDRESS
    absltest.main(argv=sys.argv[:1] + sys.argv[3:])
