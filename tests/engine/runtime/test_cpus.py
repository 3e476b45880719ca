"""CPUs and memory that the process may use: containers' limits, affinity, OMP_NUM_THREADS."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from convcore.engine.runtime import memory
from convcore.engine.runtime.cpus import cpu_limit, memory_bytes


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Return write(path, text) into an empty root, on a machine of 16 CPUs."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def write(path: str, text: str) -> Path:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("quota", "cpus"),
    [
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("50000 100000", 1),
        ("1000 100000", 1),
        ("max 100000", 16),
        ("3200000 100000", 16),
        ("nonsense", 16),
        ("", 16),
        ("100000 0", 16),
        ("-1 100000", 16),
    ],
)
def test_cpu_limit_rounds_a_quota_of_cgroup_2_up(quota, cpus, tree):
    root = tree("proc/self/cgroup", "0::/\n")
    tree("sys/fs/cgroup/cpu.max", quota + "\n")
    assert cpu_limit(root) == cpus


def test_cpu_limit_is_the_least_of_the_groups_above(tree):
    root = tree("proc/self/cgroup", "0::/outer/inner\n")
    tree("sys/fs/cgroup/outer/cpu.max", "300000 100000\n")
    tree("sys/fs/cgroup/outer/inner/cpu.max", "700000 100000\n")
    assert cpu_limit(root) == 3
    tree("sys/fs/cgroup/outer/inner/cpu.max", "200000 100000\n")
    assert cpu_limit(root) == 2


def test_cpu_limit_finds_the_quota_of_a_container_that_names_the_hosts_group(tree):
    root = tree("proc/self/cgroup", "0::/docker/0123abcd\n")
    tree("sys/fs/cgroup/cpu.max", "400000 100000\n")
    assert cpu_limit(root) == 4


@pytest.mark.parametrize(("quota", "cpus"), [("350000", 4), ("-1", 16), ("x", 16)])
def test_cpu_limit_reads_cgroup_1(quota, cpus, tree):
    root = tree("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n")
    for folder in ("cpu", "cpu,cpuacct"):
        tree(f"sys/fs/cgroup/{folder}/job/cpu.cfs_quota_us", quota + "\n")
        tree(f"sys/fs/cgroup/{folder}/job/cpu.cfs_period_us", "100000\n")
    assert cpu_limit(root) == cpus


def test_cpu_limit_without_any_cgroup_is_the_affinity(tmp_path, tree):
    assert cpu_limit(tmp_path) == 16


@pytest.mark.parametrize(
    ("asked", "cpus"),
    [("3", 3), (" 5 ", 5), ("6,2", 6), ("40", 40), ("0", 2), ("-1", 2), ("many", 2), ("", 2)],
)
def test_cpu_limit_gives_way_to_omp_num_threads(asked, cpus, tree, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    root = tree("proc/self/cgroup", "0::/\n")
    tree("sys/fs/cgroup/cpu.max", "200000 100000\n")
    assert cpu_limit(root) == cpus


def test_memory_is_the_least_limit_of_cgroup_2(tree):
    root = tree("proc/self/cgroup", "0::/outer/inner\n")
    tree("sys/fs/cgroup/outer/memory.max", f"{512 << 20}\n")
    tree("sys/fs/cgroup/outer/inner/memory.max", "max\n")
    assert memory_bytes(root) == 512 << 20
    tree("sys/fs/cgroup/outer/inner/memory.max", f"{64 << 20}\n")
    assert memory_bytes(root) == 64 << 20


def test_memory_reads_cgroup_1(tree):
    root = tree("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n")
    tree("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{2**63 - 4096}\n")  # no limit
    tree("sys/fs/cgroup/memory/job/memory.limit_in_bytes", f"{256 << 20}\n")
    assert memory_bytes(root) == 256 << 20


@pytest.mark.parametrize("limit", ["max", "nonsense", "", "-1", str(2**63 - 4096)])
def test_memory_without_a_limit_is_the_machines(limit, tree):
    root = tree("proc/self/cgroup", "0::/\n")
    tree("sys/fs/cgroup/memory.max", limit + "\n")
    assert memory_bytes(root) == memory_bytes(root / "nowhere")


def test_a_quarter_of_the_memory_is_cached():
    assert memory.get_cache_limit() == memory_bytes() // 4
