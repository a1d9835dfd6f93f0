"""The pages of the site: every page in docs/, and pages of other folders under a name of the site."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The built site; git ignores it.
SITE = ROOT / "docs" / "_site"
# The folder of the pictures of the console, which `make screens` makes; git ignores it.
SCREENS = "screens"

# Pages outside docs/, with their names in the site.
OUTSIDE = {
    "README.md": "overview",
    "sdk/README.md": "reference/sdk-and-command-line",
    "agents/README.md": "reference/agent",
    "agents/docs/components.md": "reference/component-files",
    "agents/docs/local.md": "reference/local-runner",
    "agents/docs/slurm.md": "reference/slurm-runner",
    "agents/docs/ray.md": "reference/ray-runner",
    "agents/docs/psij.md": "reference/psij-runner",
    "agents/docs/policy.md": "reference/agent-policy",
    "agents/workloads/README.md": "reference/workloads/index",
    "agents/workloads/apache-gcc/README.md": "reference/workloads/apache-gcc",
    "agents/workloads/burst-buffer/README.md": "reference/workloads/burst-buffer",
    "agents/workloads/function-placement/README.md": "reference/workloads/function-placement",
    "agents/workloads/gcc-flags/README.md": "reference/workloads/gcc-flags",
    "agents/workloads/openmpi-collectives/README.md": "reference/workloads/openmpi-collectives",
    "agents/workloads/compression/README.md": "reference/workloads/compression",
    "agents/workloads/jvm-jobs/README.md": "reference/workloads/jvm-jobs",
    "agents/workloads/kafka-producer/README.md": "reference/workloads/kafka-producer",
    "agents/workloads/mariadb/README.md": "reference/workloads/mariadb",
    "agents/workloads/memcached/README.md": "reference/workloads/memcached",
    "agents/workloads/nginx-proxy/README.md": "reference/workloads/nginx-proxy",
    "agents/workloads/redis/README.md": "reference/workloads/redis",
    "agents/workloads/rocksdb/README.md": "reference/workloads/rocksdb",
    "agents/workloads/runtime-gc/README.md": "reference/workloads/runtime-gc",
    "agents/workloads/spark/README.md": "reference/workloads/spark",
    "agents/workloads/sqlite/README.md": "reference/workloads/sqlite",
    "agents/workloads/thread-waits/README.md": "reference/workloads/thread-waits",
    "agents/workloads/postgresql/README.md": "reference/workloads/postgresql",
    "agents/workloads/small-read-optimizer/README.md": "reference/workloads/small-read-optimizer",
    "agents/workloads/stm-cache/README.md": "reference/workloads/stm-cache",
    "agents/workloads/web-proxy/README.md": "reference/workloads/web-proxy",
    "deploy/README.md": "how-to/deploy",
    "deploy/HOSTING.md": "how-to/host",
    "deploy/keycloak/README.md": "reference/keycloak-realm",
    "deploy/helm/README.md": "how-to/kubernetes",
    "deploy/slurm/README.md": "how-to/slurm-plug-in",
    "service/README.md": "project/service",
    "service/ARCHITECTURE.md": "project/architecture",
    "service/replay/README.md": "how-to/replay",
    "web/README.md": "project/console",
    "tests/README.md": "project/tests",
    "tests/benchmarks/README.md": "project/benchmarks",
    "tests/benchmarks/data/README.md": "project/measured-tables",
    "CONTRIBUTING.md": "project/contributing",
    "SECURITY.md": "project/security",
    "CHANGELOG.md": "project/changelog",
}


def site_pages() -> dict[str, str]:
    """Return the name in the site, without a suffix, of each Markdown file by its path in the repository."""
    own = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT / "docs").as_posix()
        if not name.startswith("_"):
            own[f"docs/{name}"] = f"{name.removesuffix('README.md')}index" if path.name == "README.md" else name[:-3]
    return {**own, **OUTSIDE}


# Code that pages describe. The list of errors also reads the rest of the service; `make docs` always does.
DESCRIBED = (
    "proto/trimtab",
    "sdk/trimtab",
    "agents/trimtab_agent/main.py",
    "agents/trimtab_agent/matching/wrap.py",
    "agents/workloads/gallery.yaml",
    "service/algorithms",
    "service/api",
    "service/config/settings",
    "service/core",
    "service/doctor/command.py",
    "service/main.py",
    "service/operating.py",
    "service/planning",
    "service/policies",
    "service/replay/cli.py",
)


def sources() -> list[Path]:
    """Return the files on which the site depends: pages, the site's programs, and the code that pages describe."""
    suffixes = {".py", ".md", ".proto", ".css", ".html", ".js", ".yaml"}
    found = {ROOT / path for path in site_pages()} | {ROOT / "demo" / "trajectory.svg"}
    for place in ("docs", *DESCRIBED):
        path = ROOT / place
        files = [path] if path.is_file() else path.rglob("*")
        found.update(one for one in files if one.suffix in suffixes and not {"_gen", "_site"} & set(one.parts))
    return sorted([*found, *(ROOT / SCREENS).glob("*-wide-*.png")])
