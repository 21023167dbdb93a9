"""Tune and train a private classifier with one total (epsilon, delta).

The handwritten digits of scikit-learn take the place of sensitive rows. Their pixels have a public
range, 0 to 16, so that scaling them needs no look at the data.
"""

from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skdptune import DPRandomSearchCV
from skdptune.linear_model import DPLogisticRegression

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 8.0 - 1.0, y, random_state=0, stratify=y)

model = DPLogisticRegression(solver="sgd", batch_size=0.05, epochs=10, classes=range(10))
search = DPRandomSearchCV(
    model,
    {"learning_rate": loguniform(0.1, 10.0), "max_grad_norm": loguniform(0.1, 5.0)},
    n_iter=20,
    epsilon=2.0,
    delta=1e-5,
    random_state=0,  # for a page that reads the same twice; leave it out for real noise
)

print("Before any row is read:")
print(search.plan(*X.shape))

search.fit(X, y)
print("\nAfter the fit:")
print(search.privacy_)
print("\nchosen:", {name: round(float(value), 3) for name, value in search.best_params_.items()})

untuned = model.set_params(epsilon=2.0, delta=1e-5, random_state=0).fit(X, y)
ceiling = LogisticRegression(max_iter=1000).fit(X, y)
print(f"\ntest accuracy   tuned, ε = 2 in all:  {search.score(X_test, y_test):.3f}")
print(f"                untuned, ε = 2:       {untuned.score(X_test, y_test):.3f}")
print(f"                no privacy at all:    {ceiling.score(X_test, y_test):.3f}")
