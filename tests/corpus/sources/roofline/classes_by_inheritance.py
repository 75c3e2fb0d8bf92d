# Operations are classes that inherit from each other, and find their sizes by __getattr__.


class Operation:
    known = {}
    kinds = ()

    def __init_subclass__(cls):
        cls.known.update(dict.fromkeys(cls.kinds, cls))

    def __init__(self, given):
        self.given = given

    def __getattr__(self, name):
        try:
            return self.given[name]
        except KeyError:
            raise AttributeError(name) from None

    @classmethod
    def of(cls, given):
        return cls.known[given["kind"]](given)

    @property
    def bytes(self):
        item = 1 if self.dtype == "int8" else 2 if self.dtype == "float16" else 4
        return item * (self.read + self.written)

    read = property(lambda self: self.size)
    written = property(lambda self: self.size)
    flops = property(lambda self: self.size * self.flops_each)


class Pointwise(Operation):
    kinds = ("copy", "gelu")
    size = property(lambda self: self.elements)


class Add(Pointwise):
    kinds = ("add",)
    read = property(lambda self: self.size * 2)


class Table(Operation):
    kinds = ("softmax", "transpose")
    size = property(lambda self: self.rows * self.columns)


class RowSum(Table):
    kinds = ("row_sum",)
    written = property(lambda self: self.rows)


class Product(Operation):
    kinds = ("matmul",)
    times = 1
    read = property(lambda self: self.times * self.k * (self.m + self.n))
    written = property(lambda self: self.times * self.m * self.n)
    flops = property(lambda self: self.written * self.k * 2)


class Products(Product):
    kinds = ("batched_matmul",)
    times = property(lambda self: self.batch)


class ByVector(Product):
    kinds = ("matvec",)
    n = 1


class Convolution(Product):
    """A product of every pixel's surroundings by the filters, whose inputs overlap."""

    kinds = ("conv2d",)
    m = property(lambda self: self.batch * self.height * self.width)
    n = property(lambda self: self.filters)
    k = property(lambda self: self.channels * self.kernel**2)
    read = property(lambda self: self.m * self.channels + self.k * self.n)


class Attention(Operation):
    kinds = ("attention",)
    size = property(lambda self: self.batch * self.heads * self.queries * self.head_dim)
    cache = property(
        lambda self: self.batch * self.kv_heads * self.keys * self.head_dim
    )
    read = property(lambda self: self.size + self.cache * 2)
    flops = property(lambda self: self.size * self.keys * 4)


def flops(operation):
    return float(Operation.of(operation).flops)


def least_bytes(operation):
    return float(Operation.of(operation).bytes)


def bound(operation, card):
    by_memory = least_bytes(operation) * card["flops_per_s"][operation["dtype"]]
    return "memory" if by_memory > flops(operation) * card["bytes_per_s"] else "compute"


def seconds(operation, card):
    # at best, and what real kernels take, within what is allowed
    rates = {
        "memory": card["bytes_per_s"],
        "compute": card["flops_per_s"][operation["dtype"]],
    }
    work = {"memory": least_bytes(operation), "compute": flops(operation)}
    return 1.05 * max(work[each] / rates[each] for each in rates)


def times_faster(first, second):
    def one_way(bytes_per_s, counts, **_):
        return bytes_per_s * {"one way": 1.0}.get(counts, 0.5)

    return one_way(**first) / one_way(**second)
