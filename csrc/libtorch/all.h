// All of libtorch that weft has but the frontend, which nn.h adds: what <torch/script.h> includes.
#pragma once

#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 13
#define TORCH_VERSION_PATCH 0
#define TORCH_VERSION "2.13.0"

#include "absent.h"
#include "autocast.h"
#include "checks.h"
#include "context.h"
#include "custom_function.h"
#include "dispatch.h"
#include "foreign.h"
#include "graph.h"
#include "library.h"
#include "model_package.h"
#include "module_file.h"
#include "narrow.h"
#include "node.h"
#include "random.h"
#include "storage.h"
