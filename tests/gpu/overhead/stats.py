"""Medians, spreads, and intervals for ratios of medians.

Runs come in rounds: each round holds one fresh process of every configuration. The bootstrap
draws whole rounds with replacement, so a drift that slows all configurations of a round alike
does not widen the interval. Percentile method (Efron and Tibshirani, An Introduction to the
Bootstrap, chapter 13). With few rounds such intervals are too narrow rather than too wide: with
7 to 11 rounds read "95 %" as "about 90 %".
"""

import random
import statistics


def quantile(values, share):
    """Linear interpolation between the ordered values; `share` from 0 to 1."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def summary(values):
    """Count, median, extremes and quartiles."""
    return {
        "runs": len(values),
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "quartile_1": quantile(values, 0.25),
        "quartile_3": quantile(values, 0.75),
    }


def paired(one, other):
    """Values of the rounds that both have, from two {round: value} tables."""
    rounds = sorted(set(one) & set(other))
    return [(one[number], other[number]) for number in rounds]


def ratio_of_medians(one, other, resamples=10000, seed=1, confidence=0.95):
    """median(one) / median(other) with a bootstrap interval; None if they share no round.

    `one` and `other` are {round: value} tables. The interval is None with fewer than 3 rounds:
    there is nothing to draw from.
    """
    pairs = paired(one, other)
    if not pairs:
        return None

    def ratio(sample):
        return statistics.median(pair[0] for pair in sample) / statistics.median(
            pair[1] for pair in sample
        )

    result = {"ratio": ratio(pairs), "rounds": len(pairs), "low": None, "high": None}
    if len(pairs) >= 3:
        generator = random.Random(seed)
        drawn = [ratio(generator.choices(pairs, k=len(pairs))) for _ in range(resamples)]
        tail = (1.0 - confidence) / 2.0
        result["low"] = quantile(drawn, tail)
        result["high"] = quantile(drawn, 1.0 - tail)
    return result


def verdict_of_limit(ratio, limit):
    """`met` or `missed` where the whole interval lies on one side of the limit, else `undecided`."""
    if ratio is None or ratio["low"] is None:
        return "undecided"
    if ratio["high"] <= limit:
        return "met"
    if ratio["low"] > limit:
        return "missed"
    return "undecided"
