"""Which accuracy for which budget
==================================

Which accuracy is possible for an epsilon? The Pareto front of a model, and models on it.

    python examples/pareto_front.py [--picture front.png]

The handwritten digits of scikit-learn take the place of sensitive rows. Which epsilon to choose
is not known yet, so the search finds the best accuracy for every epsilon: over noise, clipping,
learning rate, epochs and batch size. The front is not private, only for those who may see the
data; a model with parameters of the front costs the epsilon that is printed beside it.

Needs the extra ``pareto``.
"""

import argparse

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skdptune import DParetoSearchCV
from skdptune.inspection import ParetoFrontDisplay
from skdptune.linear_model import DPLogisticRegression

SPACE = {
    "noise_multiplier": (0.5, 20.0, "log"),
    "max_grad_norm": (0.1, 5.0, "log"),
    "learning_rate": (0.05, 20.0, "log"),
    "epochs": (1, 40),
    "batch_size": (0.02, 0.3, "log"),
}


def main() -> None:
    """Search, draw, and fit a model for an epsilon and one for an accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", default="pareto_front.png", help="where the picture goes")
    parser.add_argument("--evaluations", type=int, default=96)
    arguments = parser.parse_args()

    X, y = load_digits(return_X_y=True)
    # Pixels have a public range, 0 to 16: scaling them needs no look at the data.
    X, X_test, y, y_test = train_test_split(X / 8.0 - 1.0, y, random_state=0, stratify=y)

    search = DParetoSearchCV(
        DPLogisticRegression(solver="sgd", classes=range(10)),
        SPACE,
        n_iter=arguments.evaluations - 16,
        n_repeats=2,
        cv=5,
        random_state=0,  # for the same output each time; leave it out for real noise
    ).fit(X, y)

    print("The front (not private, only for those who may see the data):")
    front = search.pareto_front_
    print(front[::4].drop(columns="params").round(3).to_string(index=False))
    print(f"\nhypervolume {search.hypervolume_:.3f} after {len(search.evaluations_)} evaluations")

    ceiling = LogisticRegression(max_iter=1000).fit(X, y).score(X_test, y_test)
    print(f"\ntest accuracy without privacy: {ceiling:.3f}")
    for wish in ({"epsilon": 1.0}, {"epsilon": 4.0}, {"error": 0.1}):
        model = search.best_estimator_for(X, y, **wish, random_state=0)
        (name, bound), cost = *wish.items(), model.privacy_.epsilon
        score = model.score(X_test, y_test)
        print(f"wanted {name} ≤ {bound:<4g} cost ε = {cost:.2f}, test accuracy {score:.3f}")

    display = ParetoFrontDisplay.from_search(search, y="utility", annotate=(1.0, 4.0))
    display.ax_.axhline(
        ceiling, color="#666666", linewidth=0.8, linestyle="--", label="without privacy"
    )
    display.ax_.legend(frameon=False, loc="lower right")
    display.ax_.set_ylabel("accuracy")
    display.ax_.set_title("Digits: what accuracy an ε buys", loc="left")
    display.figure_.savefig(arguments.picture, dpi=150, bbox_inches="tight")
    print(f"\npicture: {arguments.picture}")


if __name__ == "__main__":
    main()
