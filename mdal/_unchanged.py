"""A fit that fails changes nothing."""

from contextlib import contextmanager


@contextmanager
def unchanged_on_failure(*objects):
    """Put the attributes of objects back as they were if what is inside fails.

    Attributes come back, not what is inside them: inside, they have to be replaced
    and not written into.
    """
    before = [vars(each).copy() for each in objects]
    try:
        yield
    except BaseException:
        for each, attributes in zip(objects, before, strict=True):
            vars(each).clear()
            vars(each).update(attributes)
        raise
