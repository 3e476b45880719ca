"""Attention in exported models: scaled products, layers of several heads, whole encoders."""

import pytest

import convcore
from convcore import nn
from convcore.nn import functional as F
from convcore.onnx import OnnxError, export


def attention(**options):
    return lambda x: F.scaled_dot_product_attention(x, x, x, **options)


def hiding_rows(x):
    """Attention in which some queries see no key."""
    mask = x.mean(-1, keepdim=True) > 0
    return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


FUNCTIONS = {
    "plain": attention(),
    "causal": attention(is_causal=True, scale=0.3),
    "grouped": lambda x: F.scaled_dot_product_attention(x, x[:, :2], x[:, 2:], enable_gqa=True),
    "computed_mask": hiding_rows,
    "added_mask": lambda x: F.scaled_dot_product_attention(x, x, x, x[..., :1, :5]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_scaled_products(name, agree, x):
    agree(FUNCTIONS[name], x)


def test_dropped_weights_are_refused(x):
    class Net(nn.Module):
        def forward(self, x):
            return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

    with pytest.raises(OnnxError, match=r"attention\(\) cannot be exported: dropout_p=0\.5"):
        export(Net(), x)


class Itself(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self, *arguments, masks=(), **options):
        super().__init__()
        self.layer = nn.MultiheadAttention(*arguments, **options)
        self.masks = dict(masks)

    def forward(self, x):
        return self.layer(x, x, x, **self.masks)


CAUSAL = nn.Transformer.generate_square_subsequent_mask(4)
SELF = {
    "plain": Itself(6, 2, batch_first=True),
    "without_bias": Itself(6, 3, batch_first=True, bias=False),
    "without_weights": Itself(6, 2, batch_first=True, masks={"need_weights": False}),
    "weights_of_each": Itself(6, 2, batch_first=True, masks={"average_attn_weights": False}),
    "mask": Itself(6, 2, batch_first=True, masks={"attn_mask": CAUSAL}),
    "mask_of_bools": Itself(
        6, 2, batch_first=True, masks={"attn_mask": CAUSAL < 0, "need_weights": False}
    ),
    "encoder_layer": nn.TransformerEncoderLayer(6, 2, 8, batch_first=True),
    "encoder": nn.TransformerEncoder(
        nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, norm_first=True, activation="gelu"), 2
    ),
}


@pytest.mark.parametrize("name", SELF)
def test_layers_with_a_free_batch(name, agree, x):
    convcore.manual_seed(0)
    agree(SELF[name], x[..., 0, :])


def test_a_batch_in_the_second_place(agree, x):
    agree(Itself(6, 2), x[..., 0, :], free=1)


@pytest.mark.parametrize(
    "layer",
    [
        nn.MultiheadAttention(6, 2),
        nn.MultiheadAttention(6, 2, kdim=6, vdim=6),
        nn.TransformerDecoderLayer(6, 2, 8),
        nn.Transformer(6, 2, 1, 1, 8),
    ],
)
def test_layers_of_more_inputs(layer, agree, x):
    inputs = [x[:, :, 0], x[1:, :, 1]]
    if isinstance(layer, nn.MultiheadAttention):
        inputs.append(x[1:, :, 2])
    elif isinstance(layer, nn.Transformer):
        inputs.reverse()
    agree(layer, *inputs, free=None)


def test_a_mask_of_padding_is_an_input(agree, x):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.MultiheadAttention(6, 2, batch_first=True)

        def forward(self, x, padding):
            return self.layer(x, x, x, key_padding_mask=padding)

    padding = convcore.tensor([[False, False, True, True]] * 2 + [[False] * 4])
    agree(Net(), x[:, :, 0], padding, free=None)


def test_more_keys_are_refused(x):
    with pytest.raises(OnnxError, match="with bias_k"):
        export(Itself(6, 2, add_bias_kv=True), x[..., 0, :])
