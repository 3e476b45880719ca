"""AMD's library of convolutions: there is none, and its switch changes nothing."""

from convcore.backends._switches import flags_of

immediate = False
flags = flags_of(__name__)
