// torch::nn: layers, their functions, initialisation.
#pragma once

#include "nn_recurrent.h"
