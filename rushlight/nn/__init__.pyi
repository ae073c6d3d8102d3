from rushlight.nn import attention as attention
from rushlight.nn import functional as functional
from rushlight.nn import grad as grad
from rushlight.nn import init as init
from rushlight.nn import modules as modules
from rushlight.nn import parallel as parallel
from rushlight.nn import utils as utils
from rushlight.nn.functional.classification import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from rushlight.nn.modules import *  # noqa: F403
from rushlight.nn.parameter import Buffer as Buffer
from rushlight.nn.parameter import Parameter as Parameter
from rushlight.nn.parameter import UninitializedBuffer as UninitializedBuffer
from rushlight.nn.parameter import UninitializedParameter as UninitializedParameter
