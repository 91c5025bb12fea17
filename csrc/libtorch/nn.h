// The C++ frontend: what <torch/torch.h> has beside <torch/script.h>.
#pragma once

#include "all.h"
#include "data.h"
#include "nn_transformer.h"
#include "optim_schedules.h"
#include "serialize.h"
