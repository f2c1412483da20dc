#include "train/run.h"

int main(int argc, char** argv) { return optim_offload::train::run_trainer(argc, argv); }
