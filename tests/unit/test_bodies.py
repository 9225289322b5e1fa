"""The bodies of requests: what is wrong with a field is reported, whatever it holds."""

import json

import pytest

from dueline.errors import InvalidJob
from functions.http import requests


def deepest(most):
    """Return how deep a list may be nested for json.loads to read it."""
    least = 1
    while least < most:
        depth = (least + most + 1) // 2
        try:
            json.loads("[" * depth + "]" * depth)
            least = depth
        except RecursionError:
            most = depth - 1
    return least


@pytest.mark.parametrize("form", ['{"payload":1,"tenant":%s}', '{"jobs":{"a":%s}}', "%s"])
def test_deepest_nested_field_is_refused_by_its_name(form):
    most = deepest(300_000)
    for depth in range(most - 100, most + 1):
        with pytest.raises(InvalidJob, match=r"^(tenant|jobs|body) is ") as error:
            requests.read_jobs(form % ("[" * depth + "]" * depth))
        assert len(str(error.value)) < 400


@pytest.mark.parametrize("value", [{"a": [1, None]}, "ü", "x" * 200, [1] * 99, [[]] * 99, True])
def test_wrong_value_is_quoted_up_to_100_characters(value):
    with pytest.raises(InvalidJob) as error:
        requests.read_jobs(json.dumps({"payload": 1, "at": value}))
    assert str(error.value).startswith(f"at is {json.dumps(value)[:100]}: must be")


def test_three_wrong_fields_are_named_and_the_rest_counted():
    with pytest.raises(InvalidJob) as error:
        requests.read_jobs(json.dumps({"payload": 1} | {f"column_{n}": n for n in range(150)}))
    first, second, third, more = str(error.value).split("; ")
    assert [each.partition(" ")[0] for each in (first, second, third)] == ["column_0", "column_1", "column_2"]
    assert more == "and 147 more"


def test_name_of_a_wrong_field_is_cut_at_100_characters():
    with pytest.raises(InvalidJob) as error:
        requests.read_jobs(json.dumps({"payload": 1, "é" * 1_000_000: 1}))
    assert str(error.value).startswith("é" * 100 + " is no field: there are payload")


def test_answer_about_500_wrong_jobs_fits_lambda():
    wrong = {"é" * 50 + str(n): n for n in range(30)}
    results = requests.read_jobs(json.dumps({"jobs": [wrong] * 500}))
    assert sum(len(json.dumps(json.dumps(str(each)))) for each in results) < 6_000_000 / 2


@pytest.mark.parametrize("one", ["1", "1.0", "0.1e1"])
def test_number_without_a_fraction_is_an_integer(one):
    size = requests.read_body(requests.UploadBody, f'{{"bytes": {one}, "sha256": "{"0" * 64}"}}').bytes
    request = requests.read_jobs(f'{{"payload": 1, "priority": {one}}}')
    assert (size, type(size)) == (request.priority, type(request.priority)) == (1, int)


@pytest.mark.parametrize(
    ("form", "field"),
    [('{"payload":1,"delay":%s}', "delay"), ('{"jobs":[{"payload":{"a":%s}}]}', "a"), ("%s", "body")],
)
def test_integer_of_5000_digits_is_refused_by_its_field(form, field):
    with pytest.raises(InvalidJob, match=f"^{field} has an integer of 5000 digits: at most 4300 are allowed"):
        requests.read_jobs(form % ("9" * 5000))


@pytest.mark.parametrize("size", ["615.5", '"615"', "true", "1e400"])
def test_no_integer_is_refused(size):
    with pytest.raises(InvalidJob, match=r"^bytes is "):
        requests.read_body(requests.UploadBody, f'{{"bytes": {size}, "sha256": "{"0" * 64}"}}')
