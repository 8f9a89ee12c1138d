"""From names to the objects of a run: each made once, and all that is missing told at once."""

import pytest

from modelgauge import (
    CompletionAnnotator,
    ExternalData,
    FunctionSUT,
    InjectSecret,
    LocalData,
    PromptResponseTest,
    RequiredSecret,
    SecretDescription,
    TestItem,
    WebData,
    hookimpl,
)
from modelgauge.config.secrets import SecretStore
from modelgauge.dependencies.store import DependencyStore
from modelgauge.errors import (
    DefinitionError,
    DependencyMissingError,
    IncompatibleError,
    MissingSecretError,
    UnknownNameError,
    UsageError,
)
from modelgauge.interfaces.sut import AcceptsChatPrompt
from modelgauge.metrics import ExactMatchMetric
from modelgauge.plugins.discovery import Plugins
from modelgauge.plugins.resolution import Resolver


class Key(RequiredSecret):
    @classmethod
    def description(cls):
        return SecretDescription(scope="acme", key="api_key", instructions="Ask acme.")


class OtherKey(RequiredSecret):
    @classmethod
    def description(cls):
        return SecretDescription(scope="judges", key="api_key", instructions="Ask the judges.")


class Named(FunctionSUT):
    def __init__(self, uid, key=None):
        super().__init__(uid, str)


class Length(CompletionAnnotator):
    def __init__(self, uid, key=None):
        super().__init__(uid)

    def get_suts(self):
        return {"helper": "helper"}

    def translate_request(self, prompt, completion):
        return completion.text

    async def annotate(self, request):
        return len(request)

    def translate_response(self, request, response):
        return response


class Asks(PromptResponseTest):
    asked_for_annotators = 0

    def make_test_items(self, dependencies):
        return [TestItem(["x"])]

    def get_annotators(self):
        self.asked_for_annotators += 1
        return {"length": "length", "own": Length("own")}

    def measure_quality(self, item):
        return {"length": item.annotation("length", int)}


class NeedsChat(Asks):
    requires_sut_capabilities = (AcceptsChatPrompt,)


class NeedsData(Asks):
    def get_dependencies(self) -> dict[str, ExternalData]:
        return {"facts": LocalData("no/such/file.csv")}


class Registers:
    @hookimpl
    def modelgauge_register_suts(self, register):
        register("helper", Named)
        register("acme", Named, key=InjectSecret(Key))
        register("wrong", Length)

    @hookimpl
    def modelgauge_register_annotators(self, register):
        register("length", Length)
        register("paid", Length, key=InjectSecret(OtherKey))

    @hookimpl
    def modelgauge_register_metrics(self, register):
        register("exact_match", ExactMatchMetric)
        register("length", ExactMatchMetric)

    @hookimpl
    def modelgauge_register_tests(self, register):
        register("asks", Asks)
        register("asks_chat", NeedsChat)
        register.group("all", ["asks", "asks_chat"])


@pytest.fixture
def resolver(tmp_path):
    plugins = Plugins()
    plugins.add(Registers(), "registers", "acme-plugin", started=0.0)
    return Resolver(
        lambda: plugins,
        SecretStore(env={}),
        DependencyStore(tmp_path / "dependencies", offline=True),
    )


def test_each_name_is_made_once_in_a_run(resolver):
    first, second = resolver.works(["asks"], ["helper", Named("mine")])
    assert first.test is second.test
    assert (
        first.answer_source.sut is first.judge_suts["length"]["helper"] is first.judge_suts["own"]["helper"]
    )
    assert resolver.distributions == {"acme-plugin"}


def test_annotators_are_one_object_for_all_suts_so_that_they_have_one_limit(resolver):
    test = Asks("mine")
    pairs = resolver.works([test], [Named("a"), Named("b")])
    assert pairs[0].annotators["own"] is pairs[1].annotators["own"]


def test_a_test_is_asked_once_for_its_annotators_which_it_may_make_anew_each_time(resolver):
    made = []

    class Making(Asks):
        def get_annotators(self):
            made.append(ExactMatchMetric())
            return {"match": made[-1]}

    (pair,) = resolver.works([Making("making")], ["helper"])
    assert [pair.annotators["match"]] == made


def test_a_test_names_a_metric_as_any_annotator(resolver):
    class Matches(Asks):
        def get_annotators(self):
            return {"match": "exact_match", "length": "length"}

    (pair,) = resolver.works([Matches("matches")], ["helper"])
    assert isinstance(pair.annotators["match"], ExactMatchMetric)
    assert isinstance(pair.annotators["length"], Length)  # of one name, the annotator is meant


def test_a_misspelt_annotator_is_looked_for_among_metrics_too(resolver):
    with pytest.raises(UnknownNameError, match="Did you mean 'exact_match'"):
        resolver.annotator("exact_mach")
    with pytest.raises(UnknownNameError, match=r"annotator 'lenght'.*Did you mean 'length'"):
        resolver.annotator("lenght")


def test_all_missing_secrets_are_told_at_once(resolver):
    class Paid(Asks):
        def get_annotators(self):
            return {"paid": "paid"}

    with pytest.raises(MissingSecretError) as caught:
        resolver.works([Paid("paid")], ["acme"])
    assert "acme" in str(caught.value)
    assert "judges" in str(caught.value)


def test_all_wrong_names_and_combinations_are_told_at_once(resolver):
    with pytest.raises(UnknownNameError) as caught:
        resolver.works(["aks", "asks"], ["helper", "helpr", "nobody"])
    assert all(f"'{name}'" in caught.value.problem for name in ("aks", "helpr", "nobody"))
    assert all(f"'{name}'" in str(caught.value) for name in ("asks", "helper"))
    with pytest.raises(IncompatibleError) as caught:
        resolver.works([NeedsChat("chat"), Asks("fits")], [Named("a"), Named("b")])
    assert "SUT 'a'" in caught.value.problem
    assert "SUT 'b'" in caught.value.problem
    assert "'fits'" not in str(caught.value)


def test_groups_patterns_and_labels_are_names_too(resolver):
    with pytest.warns(
        UserWarning, match=r"^1 pair that does not fit is left out: asks_chat on me\. Test 'asks_chat'"
    ):
        (work,) = resolver.works(["all"], ["me=helper"])
    assert (work.test.uid, work.groups) == ("asks", {"all": 2})
    assert (work.answer_source.uid, work.answer_source.label) == ("helper", "me")
    with pytest.raises(IncompatibleError):
        resolver.works(["asks_*"], ["helper"])


@pytest.mark.parametrize(
    ("test", "sut", "error", "said"),
    [
        ("aks", "helper", UnknownNameError, "asks"),
        ("asks", "helpr", UnknownNameError, "helper"),
        ("asks", "wrong", DefinitionError, "is a Length, not a PromptResponseSUT"),
        (Named("x"), "helper", DefinitionError, "is not a test"),
        ("asks", 3, DefinitionError, "An int is not a SUT"),
        (
            Asks,
            "helper",
            DefinitionError,
            r'Asks is a class, and no test yet\. Make one of it: Asks\("my_test"\)',
        ),
        (
            "asks",
            Named,
            DefinitionError,
            r'Named is a class, and no SUT yet\. Make one of it: Named\("my_sut"\)',
        ),
        ("asks", str.upper, DefinitionError, r'Make a SUT of it: FunctionSUT\("my_sut", function\)'),
        (NeedsChat("chat"), "helper", IncompatibleError, "AcceptsChatPrompt"),
        (NeedsData("data"), "helper", DependencyMissingError, "no/such/file.csv"),
    ],
)
def test_what_is_wrong_is_told_before_any_call(test, sut, error, said, resolver):
    with pytest.raises(error, match=said):
        resolver.works([test], [sut])


def test_nothing_to_run_is_an_error(resolver):
    with pytest.raises(UsageError, match="nothing to run"):
        resolver.works(["asks"], [])


@pytest.mark.parametrize("method", ["get_dependencies", "get_annotators"])
@pytest.mark.parametrize(
    ("returns", "problem"),
    [
        (lambda self: {}["no"], "failed: KeyError: 'no'"),
        (lambda self: None, "failed: TypeError"),
        (lambda self: {3: "x"}, "has the key 3"),
    ],
)
def test_what_a_test_cannot_declare_names_the_method(resolver, method, returns, problem):
    wrong = type("Wrong", (Asks,), {method: returns})("wrong")
    with pytest.raises(DefinitionError, match=f"{method} of 'wrong' {problem}"):
        resolver.works([wrong], [Named("sut")])


def test_what_a_judge_cannot_declare_names_the_method(resolver):
    judge = type("Wrong", (Length,), {"get_suts": lambda self: {}["no"]})("judge")
    test = type("OfJudge", (Asks,), {"get_annotators": lambda self: {"judge": judge}})("of_judge")
    with pytest.raises(DefinitionError, match="get_suts of 'judge' failed: KeyError"):
        resolver.works([test], [Named("sut")])


@pytest.mark.parametrize(("sut", "kind"), [("helper", DependencyMissingError), ("acme", UsageError)])
def test_data_that_many_tests_lack_is_described_for_the_first_and_the_others_are_named(resolver, sut, kind):
    class Needing(Asks):
        def get_dependencies(self):
            return {"questions": WebData("https://example.org/questions", sha256="0" * 64)}

    with pytest.raises(kind) as caught:
        resolver.works([Needing(uid) for uid in ("one", "two", "three", "four")], [sut])
    told = str(caught.value)
    assert told.count("is not on this machine") == 2
    assert "2 more tests lack data: three, four. See what a test needs: " in told
