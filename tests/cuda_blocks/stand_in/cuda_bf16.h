// Only device code uses this header of CUDA.
