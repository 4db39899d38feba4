from corral.serve import rate_limit
from corral.serve.rate_limit import RateLimiter


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_burst_is_served_then_the_rate_holds():
    clock = Clock()
    limiter = RateLimiter(per_s=2.0, burst=3.0, clock=clock)
    assert [limiter.take("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert limiter.take("a") == 0.5
    clock.now_s += 0.5
    assert limiter.take("a") == 0.0
    assert limiter.take("a") == 0.5


def test_clients_do_not_share_a_bucket():
    limiter = RateLimiter(per_s=1.0, burst=1.0, clock=Clock())
    assert limiter.take("a") == 0.0
    assert limiter.take("b") == 0.0
    assert limiter.take("a") > 0.0


def test_a_bucket_never_holds_more_than_its_burst():
    clock = Clock()
    limiter = RateLimiter(per_s=1.0, burst=2.0, clock=clock)
    limiter.take("a")
    clock.now_s += 1000.0
    assert [limiter.take("a") == 0.0 for _ in range(3)] == [True, True, False]


def test_a_charge_makes_debt_but_not_without_end():
    limiter = RateLimiter(per_s=1.0, burst=10.0, clock=Clock())
    limiter.charge("a", 1000.0)
    assert limiter.take("a") == 11.0


def test_the_memory_for_addresses_is_bounded(monkeypatch):
    monkeypatch.setattr(rate_limit, "MAX_CLIENTS", 100)
    limiter = RateLimiter(per_s=1.0, burst=1.0, clock=Clock())
    for number in range(1000):
        limiter.take(str(number))
    assert len(limiter._buckets) == 100
    assert limiter.take("999") > 0.0  # the newest are remembered
