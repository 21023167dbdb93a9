"""Promises of all private nets: the cost, fresh noise, and unpublished values."""

import copy
import functools
import inspect
import itertools
import pickle
import warnings

import numpy as np
import pytest
import torch
from opacus.accountants import PRVAccountant
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from skorch import NeuralNet
from skorch.callbacks import Callback
from torch import nn

from skdptune.ledger import PrivacyLedger
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPRandomSearchCV, RandomRuns
from skdptune.neural_network import (
    MLP,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetRegressor,
)
from tests.base.counted import cloudpickle
from tests.base.nasty_records import (
    EXTREME,
    FIT_TAKES_ANY_RECORD,
    FIT_TAKES_ANY_TARGET,
    FORMS,
    IMPROPER,
    as_column,
    as_list,
    interrupted_draws,
    nasty_rows,
    with_record,
)
from tests.conventions import check_as_scikit_learn_does
from tests.neural_network.nets import KINDS, MODES, data, net_of, weights_of

# Privacy cost ----------------------------------------------------------------------------


@pytest.mark.parametrize(("batch_size", "epochs"), [(64, 1), (0.05, 7.5), (5000, 7.5)])
def test_plan_is_that_of_private_logistic_regression(batch_size, epochs):
    linear = DPLogisticRegression(
        1.5, 1e-5, solver="sgd", epochs=epochs, batch_size=batch_size, max_grad_norm=0.5
    )
    net = net_of(epsilon=1.5, delta=1e-5, max_epochs=epochs, batch_size=batch_size)
    assert net.privacy_profile(3000) == linear.privacy_profile(3000, 4)
    assert net.noise_level(3000) == linear.noise_level(3000, 4)


@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.01, 1.0, 1000), (0.05, 2.0, 400)])
def test_cost_agrees_with_the_accountant_of_opacus(rate, noise, steps):
    # Theorem U1: training of a net, and how it is watched.
    accountant = PRVAccountant()
    accountant.history = [(noise, rate, steps)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = accountant.get_epsilon(1e-5)
    net = net_of(noise_multiplier=noise, batch_size=rate, max_epochs=steps * rate)
    assert net.privacy_profile(10_000).epsilon(1e-5) == pytest.approx(theirs, rel=0.02)


# Randomness ------------------------------------------------------------------------------


def test_clones_and_repeated_fits_draw_fresh_noise():
    X, y = data()
    net = net_of(random_state=None)
    found = []
    for other in (net, clone(net), net):
        # What seeds torch's own generator must not seed the noise.
        torch.manual_seed(0)
        np.random.seed(0)
        found.append(weights_of(other.fit(X, y)))
    assert not np.allclose(found[0], found[1])
    assert not np.allclose(found[0], found[2])
    assert not any("seed" in sentence for sentence in net.privacy_.assumptions)


def test_global_generators_are_restored():
    X, y = data()
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    net_of().fit(X, y)
    assert torch.equal(torch.rand(2), wanted)


# What is not published -------------------------------------------------------------------


# All attributes of a fitted net in addition to its parameters, and why each may be published.
PUBLISHED = {
    "module_": "made before records are read; its trained weights are what the fit is charged for",
    "criterion_": "made before records are read",
    "optimizer_": "made afresh for the published module; what it kept of steps is left out",
    "callbacks_": "LRScheduler as before training; others keep what their authors vouch for",
    "history_": "numbers of epochs and empty batches, both planned",
    "virtual_params_": "names of parameters of the optimizer",
    "initialized_": "always True",
    "init_context_": "always None",
    "prefixes_": "names of components",
    "cuda_dependent_attributes_": "names of components",
    "_modules": "names of components",
    "_criteria": "names of components",
    "_optimizers": "names of components",
    "_kwargs": "parameters as given",
    "_params_to_validate": "names of parameters",
    "_settings": "follows from parameters, the public number of records and the labels",
    "_sizes": "shape of a record and number of outputs, which are public",
    "_is_flat": "whether targets have one axis, which is public",
    "_middle": "follows from the public range of targets",
    "_limits": "follows from the public range of targets",
    "_unit": "follows from the public range of targets",
    "classes_inferred_": "labels, which are public",
    "n_features_in_": "shape of a record",
    "lr_": "follows from parameters and the public number of records",
    "max_grad_norm_": "follows from parameters and the public number of records",
    "max_epochs_": "follows from parameters and the public number of records",
    "plan_": "follows from parameters and the public number of records",
    "privacy_": "follows from parameters and the public number of records",
}


def without_weights(net):
    """Return the pickle of a net without its trained weights."""
    rest = copy.deepcopy(net)
    for part in rest.module_.modules():
        part._parameters.clear()
    for group in rest.optimizer_.param_groups:
        group["params"] = []
    for _, callback in rest.callbacks_:
        callback.weights = []
    return pickle.dumps(rest)


@pytest.mark.parametrize(
    ("kind", "optimizer", "together"),
    [
        (DPNeuralNetClassifier, torch.optim.SGD, False),
        (DPNeuralNetClassifier, torch.optim.Adam, True),
        (DPNeuralNetRegressor, torch.optim.Adam, False),
        (DPNeuralNetRegressor, torch.optim.SGD, True),
        (DPNeuralNetBinaryClassifier, torch.optim.Adam, False),
    ],
)
def test_all_that_is_published_is_accounted_for(kind, optimizer, together):
    # Theorem U3: of a trained net, nothing but the weights depends on records.
    X, y = data()
    found = []
    for records in (X, 0.3 - 2.0 * X):
        nets = [net_of(kind, optimizer=optimizer, random_state=seed) for seed in range(2)]
        net = (kind.fit_many(nets, records, y) if together else [nets[0].fit(records, y)])[0]
        parameters = {*net.get_params(deep=False), *inspect.signature(NeuralNet).parameters}
        assert sorted(set(vars(net)) - parameters - set(PUBLISHED)) == []
        assert not net.optimizer_.state
        assert net.module_.state_dict().keys() == dict(net.module_.named_parameters()).keys()
        assert [p for g in net.optimizer_.param_groups for p in g["params"]] == [
            *net.module_.parameters()
        ]
        found.append(net)
    assert not np.allclose(*map(weights_of, found))
    # Apart from the weights, whatever is published is the same for all records.
    assert without_weights(found[0]) == without_weights(found[1])


@pytest.mark.parametrize("mode", MODES)
def test_nothing_without_a_cost_is_kept(mode):
    X, y = data()
    net = net_of(grad_sample_mode=mode).fit(X, y)
    assert isinstance(net, NeuralNet)
    assert [sorted(epoch) for epoch in net.history_] == [["batches", "epoch"]] * 2
    assert all(batch == {} for epoch in net.history_ for batch in epoch["batches"])
    for parameter in net.module_.parameters():
        assert vars(parameter) == {}
        assert parameter.grad is None
    restored = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(restored.predict(X), net.predict(X))
    assert restored.privacy_.profile == net.privacy_.profile
    assert restored._engine is None


# What a component may do with the records that it is given: with an object, and with values.

SEEN = {}


def _in_attribute(owner, values):
    owner.last = values


def _in_list(owner, values):
    vars(owner).setdefault("seen", []).append(values.detach().tolist())


def _in_class(owner, values):
    type(owner).seen_by_all = values


def _in_global(owner, values):
    SEEN.setdefault("all", []).append(values.detach())


def _in_buffer(owner, values):
    owner.register_buffer("kept", values.detach())


def _in_frozen_parameter(owner, values):
    owner.frozen = nn.Parameter(values.detach(), requires_grad=False)


def _in_weight(owner, values):
    for parameter in owner.parameters():
        parameter.last = values.detach()


def _in_hook(owner, values):
    if not owner._forward_hooks:
        owner.register_forward_hook(functools.partial(_kept_by_hook, []))


def _kept_by_hook(seen, layer, inputs, outputs):
    seen.append(inputs)


def _in_cache(owner, values):
    _cached(tuple(values.detach().flatten().tolist()))


@functools.lru_cache
def _cached(values):
    return sum(values)


def _in_running_mean(owner, values):
    mean = getattr(owner, "mean", 1.0)
    owner.mean = 0.9 * mean + 0.1 * float(values.detach().mean())
    return mean


def _in_mean_for_predictions(owner, values):
    mean = getattr(owner, "mean", 1.0)
    if owner.training:
        owner.mean = 0.9 * mean + 0.1 * float(values.detach().mean())
        return 1.0
    return mean


HARMLESS = [_in_attribute, _in_list, _in_class, _in_global, _in_cache]
OF_MODULES = [*HARMLESS, _in_weight, _in_hook]
REFUSED = [_in_buffer, _in_frozen_parameter, _in_running_mean, _in_mean_for_predictions]


class Kept(nn.Sequential):
    """Two layers that do something with their inputs."""

    def __init__(self, keep=None, n_outputs=2):
        super().__init__(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, n_outputs))
        self.keep = keep

    def forward(self, inputs):
        scale = self.keep(self, inputs) if self.keep else None
        return super().forward(inputs) * (1.0 if scale is None else scale)


class KeptLosses:
    """A criterion that does something with its targets."""

    def __init__(self, keep=None, **settings):
        super().__init__(**settings)
        self.keep = keep

    def forward(self, outputs, targets):
        losses, mean = super().forward(outputs, targets), getattr(self, "mean", 1.0)
        if self.keep:
            self.keep(self, targets.float())
        return losses / mean


class KeptCrossEntropy(KeptLosses, nn.CrossEntropyLoss):
    pass


class KeptBinary(KeptLosses, nn.BCEWithLogitsLoss):
    pass


class KeptSquares(KeptLosses, nn.MSELoss):
    pass


class Holding(Callback):
    """Holds the module that is trained, and its weights."""

    data_independent = True

    def on_train_begin(self, net, **kwargs):
        self.module, self.weights = net.module_, list(net.module_.parameters())


CRITERIA = {
    DPNeuralNetClassifier: KeptCrossEntropy,
    DPNeuralNetBinaryClassifier: KeptBinary,
    DPNeuralNetRegressor: KeptSquares,
}


def assert_no_record_in(thing, records):
    """Assert that no pickle has two numbers of a record next to each other, in any format."""
    pickles = [pickle.dumps(thing), cloudpickle.dumps(thing)]
    for row in records[:20, :2]:
        ways = [row.astype("<f4"), row.astype(np.float32).astype("<f8")]
        # Python's numbers are pickled one by one, with the larger digits first.
        ways.append(row[:1].astype(np.float32).astype(">f8"))
        assert not any(way.tobytes() in one for way in ways for one in pickles)


def fitted_by(trainer, nets, X, y):
    """Fit two equal nets, one by one or together, and return the first."""
    if trainer == "alone":
        return nets[0].fit(X, y)
    return type(nets[0]).fit_many(nets, X, y)[0]


def each_by_another_kind(keeps, trainer):
    """Return cases with each way to keep records, in nets of one class after another."""
    return [
        (keep, kind, trainer) for keep, kind in zip(keeps, itertools.cycle(CRITERIA), strict=False)
    ]


@pytest.mark.parametrize(
    ("keep", "kind", "trainer"),
    [
        *each_by_another_kind([*OF_MODULES, *REFUSED], "alone"),
        *each_by_another_kind([_in_list, _in_weight, _in_hook, _in_running_mean], "together"),
    ],
)
def test_what_a_module_keeps_of_records_is_not_published(keep, kind, trainer):
    # Theorem U3: of a trained net, nothing but the weights depends on records.
    X, y = data()

    def made(keep):
        settings = {"module": Kept, "module__keep": keep, "callbacks": [Holding()]}
        if trainer == "together":
            del settings["callbacks"]
        return [net_of(kind, **settings) for _ in range(2)]

    nets = made(keep)
    if keep in REFUSED:
        with pytest.raises(ValueError, match="module must (not depend on earlier|treat records)"):
            fitted_by(trainer, nets, X, y)
        assert_no_record_in(nets, X)
        return
    net, wanted = fitted_by(trainer, nets, X, y), fitted_by(trainer, made(None), X, y)
    np.testing.assert_allclose(weights_of(net), weights_of(wanted), atol=1e-6)
    np.testing.assert_allclose(net.predict(X), wanted.predict(X), atol=1e-5)
    # Nor by predictions.
    assert_no_record_in(net, X)
    other = fitted_by(trainer, made(keep), 0.3 - 2.0 * X, y)
    assert without_weights(net) == without_weights(other)


@pytest.mark.parametrize(
    ("keep", "kind", "trainer"),
    [
        *each_by_another_kind([*HARMLESS, _in_running_mean], "alone"),
        *each_by_another_kind([_in_running_mean, *HARMLESS], "together"),
    ],
)
def test_what_a_criterion_keeps_of_records_is_not_published(keep, kind, trainer):
    # Theorem U3: of a trained net, nothing but the weights depends on records.
    X, y = data()
    targets = X[:, 0] if kind is DPNeuralNetRegressor else y

    def made(keep):
        settings = {"criterion": CRITERIA[kind], "criterion__keep": keep}
        return [net_of(kind, **settings) for _ in range(2)]

    nets = made(keep)
    if keep is _in_running_mean:
        with pytest.raises(ValueError, match="criterion must not depend on earlier batches"):
            fitted_by(trainer, nets, X, targets)
        return
    net, wanted = fitted_by(trainer, nets, X, targets), fitted_by(trainer, made(None), X, targets)
    np.testing.assert_allclose(weights_of(net), weights_of(wanted), atol=1e-6)
    if kind is DPNeuralNetRegressor:
        assert_no_record_in(net, np.column_stack([targets[:-1], targets[1:]]))
    other = fitted_by(trainer, made(keep), X, targets[::-1].copy())
    assert without_weights(net) == without_weights(other)


class Failing(torch.optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("in training")


@pytest.mark.parametrize("mode", MODES)
def test_a_fit_that_fails_publishes_nothing_that_a_module_keeps(mode):
    X, y = data()
    settings = {"module": MLP, "criterion": KeptCrossEntropy, "criterion__keep": _in_list}
    if mode != "ghost":
        settings |= {"module": Kept, "module__keep": _in_list}
    net = net_of(grad_sample_mode=mode, optimizer=Failing, callbacks=[Holding()], **settings)
    with pytest.raises(RuntimeError, match="in training"):
        net.fit(X, y)
    assert_no_record_in(net, X)
    assert not hasattr(net.criterion_, "seen")


@pytest.mark.parametrize("refit", [True, "winner"])
def test_searches_publish_nothing_that_a_module_keeps(refit):
    # Theorem U3: of a trained net, nothing but the weights depends on records.
    X, y = data()
    search = DPRandomSearchCV(
        net_of(module=Kept, module__keep=_in_list, classes=[0, 1], max_epochs=1),
        {"lr": [0.05, 0.5]},
        n_iter=2,
        epsilon=20.0,
        delta=1e-4,
        cv=0.3,
        refit=refit,
        random_state=0,
        strategy=RandomRuns(tuning_fraction=None),
    ).fit(X, y)
    assert_no_record_in(search, X)


def test_shared_lists_are_refused_before_a_ledger_pays():
    X, y = data()
    seen = []
    module = nn.Sequential(nn.Linear(4, 2))
    module[0].register_forward_hook(lambda _layer, inputs, _outputs: seen.append(inputs))
    with PrivacyLedger(":memory:", "records", epsilon=10.0, delta=1e-3) as ledger:
        with pytest.raises(ValueError, match="an object which its copies share"):
            net_of(module=module).fit(X, y)
        with pytest.raises(ValueError, match="must not depend on earlier batches"):
            settings = {"module": Kept, "module__keep": _in_running_mean}
            DPNeuralNetClassifier.fit_many([net_of(**settings), net_of()], X, y)
        assert ledger.spent() == 0.0
    assert not any(len(inputs) > 10 for (inputs,) in seen)


# What is refused -------------------------------------------------------------------------


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="sample_weight is not supported"):
        net_of().fit(*data(), sample_weight=np.ones(300))
    with pytest.raises(TypeError, match=r"must be X, y and groups; got \['epochs'\]"):
        net_of().fit(*data(), epochs=3)


def test_a_fit_that_fails_leaves_no_report_of_an_earlier_one():
    net = net_of().fit(*data())
    net.set_params(lr=3e38, epsilon=0.01)
    with pytest.raises(FloatingPointError, match="diverged"):
        net.fit(*data())
    assert not hasattr(net, "privacy_") and not hasattr(net, "max_epochs_")
    with pytest.raises(NotFittedError):
        net.predict(data()[0])


# scikit-learn ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, DPNeuralNetBinaryClassifier])
def test_scikit_learns_checks(kind):
    takes_any = FIT_TAKES_ANY_TARGET if kind is DPNeuralNetRegressor else FIT_TAKES_ANY_RECORD
    expected = {
        **takes_any,
        "check_no_attributes_set_in_init": "skorch keeps its history and state from the start",
        "check_do_not_raise_errors_in_init_or_set_params": (
            "the name of **components, such as module__hidden, is not a parameter"
        ),
    }
    least = 43 if kind is DPNeuralNetRegressor else 45
    found = check_as_scikit_learn_does(kind(max_epochs=3), expected, least)
    assert sorted(found["xfail"]) == sorted(expected)
    if kind is DPNeuralNetBinaryClassifier:
        assert "check_classifier_not_supporting_multiclass" in found["passed"]


# Records with any content --------------------------------------------------------------------


ROWS = np.random.default_rng(4).normal(size=(12, 3))
LABELS = np.resize([0, 1], 12)
STRANGE_LABELS = [7, -1, 0.5, "maybe", *IMPROPER]
TARGETS = [*IMPROPER, *EXTREME, 0.5]
# Every public class, with what its records may have for a target.
NETS = {
    "classifier": (DPNeuralNetClassifier, {"classes": [0, 1]}, STRANGE_LABELS),
    "binary": (DPNeuralNetBinaryClassifier, {"classes": [0, 1]}, STRANGE_LABELS),
    "regressor": (DPNeuralNetRegressor, {}, TARGETS),
}


def any_net(name, **settings):
    kind, more, _ = NETS[name]
    return net_of(kind, module=MLP(hidden=(4,)), n_public=100, **more, **settings)


def reaching(net, X, y):
    """Return the records and targets that are trained on."""
    run = net._training_run(X, y)
    return run.X.numpy(), run.targets.numpy(), run.plan, run.sizes


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NETS)
def test_a_record_changes_its_own_row_alone(name, form):
    # Theorem R5: in the worst case a record becomes a constant row.
    net = any_net(name)
    before = reaching(net, FORMS[form](ROWS), LABELS)
    strange = NETS[name][2]
    label = 1
    records = [(row, label) for row in nasty_rows(form, 3)]
    records += [([1.0, 1.0, 1.0], target) for target in strange]
    for row, target in records:
        after = reaching(net, *with_record(ROWS, LABELS, row, target, form))
        for old, new in zip(before[:2], after[:2], strict=True):
            np.testing.assert_array_equal(new[:-1], old)
            assert np.isfinite(new).all()
        assert before[2:] == after[2:]
        is_strange = strange is STRANGE_LABELS and target is not label
        if is_strange or any(value is one for value in (*row, target) for one in IMPROPER):
            assert not after[0][-1].any()
            assert not after[1][-1].any()


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
@pytest.mark.parametrize("name", NETS)
def test_no_record_makes_a_fit_fail(name, mode):
    # Theorem R5: in the worst case a record becomes a constant row.
    for form in ("objects", "doubles"):
        rows = [*as_list(ROWS), *nasty_rows(form, 3), *as_list(np.full((3, 3), 3e38))]
        targets = np.resize(as_column([*LABELS, *NETS[name][2]]), len(rows))
        net = any_net(name, grad_sample_mode=mode, batch_size=30)
        net.fit(FORMS[form](rows), targets)
        assert np.isfinite(weights_of(net)).all()
        assert np.isfinite(net.predict(ROWS)).all()


class Choosy(nn.Module):
    """Raises on batches with a large number in their first column."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, X):
        if bool((X.detach()[:, 0] > 50.0).any()):
            raise RuntimeError("a record's text")
        return self.layer(X)


@pytest.mark.parametrize("mode", ["hooks", "functorch", "auto"])
def test_a_record_that_the_module_refuses_trains_nothing(mode):
    # Theorem U1: training of a net, and how it is watched.
    X, y = data()
    X[7, 0], found = 60.0, []
    for others in (-1.0, 5.0):
        X[7, 1:] = others
        net = net_of(module=Choosy, grad_sample_mode=mode)
        found.append(weights_of(net.fit(X, y)))
    np.testing.assert_array_equal(*found)


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
def test_no_record_makes_a_fit_of_many_fail():
    # Theorem R5: in the worst case a record becomes a constant row.
    rows = [*as_list(ROWS), *nasty_rows("objects", 3), *as_list(np.full((3, 3), 3e38))]
    for name, (kind, _, strange) in NETS.items():
        targets = np.resize(as_column([*LABELS, *strange]), len(rows))
        nets = [any_net(name, random_state=seed, batch_size=30) for seed in range(3)]
        for net in kind.fit_many(nets, FORMS["objects"](rows), targets):
            assert np.isfinite(weights_of(net)).all()


@pytest.mark.parametrize("name", NETS)
def test_an_interrupted_fit_leaves_nothing_of_the_data(name):
    left = []
    for rows in (ROWS, -3.0 * ROWS):
        net = any_net(name, random_state=None)
        with pytest.raises(KeyboardInterrupt), interrupted_draws():
            net.fit(rows, LABELS)
        with pytest.raises(NotFittedError):
            net.predict(rows)
        left.append(sorted(vars(net)))
    assert left[0] == left[1]
    assert "module_" not in left[0]
