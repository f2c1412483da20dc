#pragma once

/// Marks what users may link to. The library is compiled with hidden visibility, so that nothing
/// else of it can clash with, or stand in for, symbols of the program that loads it. The mark is
/// the same in the static library: a program of several shared objects, each with the static
/// library in it, then has one table of optimizer traits and not several.
#define OPTIM_OFFLOAD_EXPORT __attribute__((visibility("default")))

/// Hides a member of a marked class.
#define OPTIM_OFFLOAD_HIDDEN __attribute__((visibility("hidden")))
