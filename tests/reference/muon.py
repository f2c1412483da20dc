"""Prints reference values of Python's torch.optim.Muon as the header muon_reference.h.

    python3 tests/reference/muon.py > tests/reference/muon_reference.h

Inputs are exact in float32 and made by a formula that the C++ test repeats, so that only results are
stored. One thread, so that no reduction depends on how many there are.
"""

import struct

import torch

STEPS = 5
SHAPES = [(4, 6), (6, 3), (5, 5)]
CASES = [
    ("Defaults", torch.float32, dict(lr=0.02)),
    ("PlainMomentum", torch.float32, dict(lr=0.02, nesterov=False, momentum=0.9)),
    (
        "MatchRms",
        torch.float32,
        dict(lr=0.01, weight_decay=0.25, adjust_lr_fn="match_rms_adamw"),
    ),
    (
        "OwnIteration",
        torch.float32,
        dict(lr=0.02, ns_steps=3, ns_coefficients=(2.0, -1.5, 0.5), eps=1e-3),
    ),
    ("BFloat16", torch.bfloat16, dict(lr=0.02)),
]


def numbers(shape, seed, dtype):
    count = shape[0] * shape[1]
    values = [((i * 7919 + seed * 104729) % 2001 - 1000) / 1024 for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).to(dtype).reshape(shape)


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return ""


def bits(tensor):
    return [
        struct.unpack("<I", struct.pack("<f", v))[0]
        for v in tensor.detach().float().flatten().tolist()
    ]


def print_array(name, values):
    print(f"inline constexpr uint32_t {name}[] = {{")
    for start in range(0, len(values), 8):
        print("    " + " ".join(f"0x{v:08x}," for v in values[start : start + 8]))
    print("};\n")


def main():
    torch.set_num_threads(1)
    print("#pragma once")
    print("// Written by muon.py; do not edit. Bits of float32 values.")
    print("#include <cstdint>\n")
    print("namespace optim_offload::muon_reference {\n")
    print(f'inline constexpr const char* kTorch = "{torch.__version__.split("+")[0]}";')
    capability = torch.backends.cpu.get_cpu_capability()
    print(f'inline constexpr const char* kCapability = "{capability}";')
    print(f'inline constexpr const char* kCpu = "{cpu_model()}";\n')
    for name, dtype, options in CASES:
        params = [
            torch.nn.Parameter(numbers(shape, 100 + i, dtype))
            for i, shape in enumerate(SHAPES)
        ]
        muon = torch.optim.Muon(params, **options)
        for step in range(STEPS):
            for i, p in enumerate(params):
                # The second parameter's gradient is late.
                late = i == 1 and step == 0
                p.grad = None if late else numbers(p.shape, 10 * step + i, dtype)
            if step == 3:
                muon.param_groups[0]["lr"] *= 0.5
            muon.step()
        print_array(f"k{name}Params", sum((bits(p) for p in params), []))
        buffers = (muon.state[p]["momentum_buffer"] for p in params)
        print_array(f"k{name}Buffers", sum((bits(b) for b in buffers), []))
    print("}  // namespace optim_offload::muon_reference")


if __name__ == "__main__":
    main()
