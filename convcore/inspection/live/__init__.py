"""A live view of training: loss, gradient norms by layer, dead units."""

from convcore.inspection.live.watch import Watch, watch

__all__ = ["Watch", "watch"]
