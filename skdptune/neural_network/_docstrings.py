"""The parts of docstrings that all private nets share."""

SHARED_TEXT = {
    "shared_parameters": """\
epsilon : float or None, default=1.0
    Privacy budget of a fit: the noise is the least that keeps within it. Infinite for no noise.
delta : float, default=1e-5
    The delta of the budget; far below one over the number of records.
optimizer : class of torch.optim.Optimizer, default=SGD
    Takes the steps along the noisy gradients.
lr : float, default=0.5
    Learning rate.
max_epochs : float, "auto" or "max", default="auto"
    Expected number of times that each record is used. "auto" follows from the public number of
    records: 10 for `DPNeuralNetClassifier`; 20 for `DPNeuralNetBinaryClassifier`, and 30 from
    4,000 on; 10 for `DPNeuralNetRegressor`, and 20 from 16,000 on. "max" stands for as many
    steps of noise `noise_multiplier` as `epsilon` and `delta` pay for.
batch_size : int or float, default=256
    Expected number of records in a batch, or their share of all records; at most all of them.
max_grad_norm : float, default=1.0
    Norm to which the gradient of each record is clipped.
noise_multiplier : float, optional
    Standard deviation of the noise in units of `max_grad_norm`. Given, it replaces `epsilon`;
    with "max" epochs both are needed.
grad_sample_mode : {"auto", "hooks", "functorch", "ghost"}, default="auto"
    How Opacus computes gradients of records: layer by layer, by torch.func, or their norms only.
    "ghost" is faster and takes less memory, and is offered for networks of linear layers on
    vectors. "auto" is "ghost" for those, and "hooks" for others.
sampling : {"poisson", "fixed", "allocation"}, default="poisson"
    "poisson" draws each record for each batch independently. "fixed" draws batches of fixed
    size, which takes about twice the noise. "allocation" puts each record into one batch of an
    epoch, at random: use it to have every record once in an epoch, with a little less noise.
max_physical_batch_size : int, optional
    Largest number of records in memory together; larger batches are processed in pieces.
fix_module : bool, default=False
    Whether Opacus may replace layers that mix records, such as BatchNorm by GroupNorm.
callbacks : list, optional
    skorch callbacks that read no data: schedules of the learning rate, and those with a class
    attribute ``data_independent = True``, whose author vouches for it.
train_split : None
    Must be None: scores of validation data that are split off would not be paid for.
predict_nonlinearity : callable, "auto" or None, default="auto"
    Applied to outputs to predict, as in skorch.
device : str or torch.device, default="cpu"
    Device to train on.
verbose : int, default=0
    Verbosity of skorch.
random_state : int or None, default=None
    None draws first weights, batches and noise from the operating system's entropy; a seed gives
    reproducible research runs.
    Fits with the same seed, such as clones on two folds, share their noise.
n_public : int, optional
    Public constant that replaces the number of records, where that number is secret.
ledger : PrivacyLedger, optional
    Where a fit sets its cost aside before it reads the data. None is the ledger in use, if
    any: that of ``with ledger:`` or `skdptune.config_context`.""",
    "class_weight": """\
class_weight : mapping of class to float, optional
    Weights of classes, by which the clipped gradients of their records are multiplied; classes
    that are not named weigh 1. They must be public numbers, not counted in the data. They are
    divided by the largest, so that no record's influence grows and the cost stays.""",
    "components": """\
**components
    Arguments of components, as in ``module__hidden`` and ``optimizer__momentum``.""",
    "shared_attributes": """\
module_ : torch.nn.Module
    The trained network, without Opacus.
max_epochs_ : float
    Number of epochs, also where `max_epochs` is "auto" or "max".
plan_ : NoisyGradientPlan
    Sampling rate, number of steps and noise.
privacy_ : PrivacyReport
    Privacy cost of the fit.
n_features_in_ : int
    Length of the second axis of the records.""",
}
