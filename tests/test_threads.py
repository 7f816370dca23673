"""One BLAS thread inside the engine, in any thread and after a fork, and the caller's number outside."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from calibo.threads import one_blas_thread


def counts():
    return {lib.get_num_threads() for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield
        assert counts() == {2}


def inside():
    with one_blas_thread():
        return counts()


def run_in_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_the_limit_holds_in_every_thread_whichever_came_first():
    assert inside() == {1}
    assert counts() == {2}
    for _ in range(3):
        assert run_in_thread(inside) == {1}
        assert counts() == {2}
        assert inside() == {1}


def test_the_last_of_several_threads_restores_the_number():
    entered, leave = threading.Event(), threading.Event()

    def stay():
        with one_blas_thread():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=stay)
    other.start()
    entered.wait(10)
    assert inside() == {1}
    assert counts() == {1}, "the other thread is still inside"
    leave.set()
    other.join()
    assert counts() == {2}


def test_a_limit_of_the_user_is_respected_and_restored():
    with threadpool_limits(1, user_api="blas"):
        assert inside() == {1}
        assert run_in_thread(inside) == {1}
        assert counts() == {1}
    assert counts() == {2}


def in_child(queue):
    queue.put((sorted(counts()), sorted(inside()), sorted(counts())))


def test_a_forked_child_starts_outside():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with one_blas_thread():
        child = context.Process(target=in_child, args=(queue,))
        child.start()
    assert queue.get(timeout=30) == ([2], [1], [2])
    child.join(30)
    assert child.exitcode == 0
