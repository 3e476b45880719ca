/* Deinterleave a line into its every stride-th elements, and interleave them again; for numbers of
 * type T. */

/* parts[s * pitch + q] = line[q * stride + s] for all elements of the line */
INLINE void OF(deinterleave)(const T *line, ptrdiff_t size, ptrdiff_t stride, T *parts,
                             ptrdiff_t pitch)
{
    T *a = parts, *b = parts + pitch, *c = parts + 2 * pitch, *d = parts + 3 * pitch;
    const ptrdiff_t count = size / stride;
    switch (stride) {
    case 1:
        memcpy(parts, line, count * sizeof(T));
        break;
    case 2:
        IVDEP for (ptrdiff_t q = 0; q < count; q++) {
            a[q] = line[2 * q];
            b[q] = line[2 * q + 1];
        }
        break;
    case 3:
        IVDEP for (ptrdiff_t q = 0; q < count; q++) {
            a[q] = line[3 * q];
            b[q] = line[3 * q + 1];
            c[q] = line[3 * q + 2];
        }
        break;
    case 4:
        IVDEP for (ptrdiff_t q = 0; q < count; q++) {
            a[q] = line[4 * q];
            b[q] = line[4 * q + 1];
            c[q] = line[4 * q + 2];
            d[q] = line[4 * q + 3];
        }
        break;
    default:
        for (ptrdiff_t s = 0; s < stride; s++)
            for (ptrdiff_t q = 0; q < count; q++) parts[s * pitch + q] = line[q * stride + s];
    }
    for (ptrdiff_t i = count * stride; i < size; i++)
        parts[i % stride * pitch + count] = line[i];
}

/* line[q * stride + s] = parts[s * pitch + q] for q in [0, count), s in [0, stride) */
INLINE void OF(interleave)(const T *parts, ptrdiff_t pitch, ptrdiff_t stride, ptrdiff_t count,
                           T *line)
{
    const T *a = parts, *b = parts + pitch, *c = parts + 2 * pitch, *d = parts + 3 * pitch;
    switch (stride) {
    case 1:
        memcpy(line, parts, count * sizeof(T));
        break;
    case 2:
        IVDEP for (ptrdiff_t q = 0; q < count; q++) {
            line[2 * q] = a[q];
            line[2 * q + 1] = b[q];
        }
        break;
    case 3:
        IVDEP for (ptrdiff_t q = 0; q < count; q++) {
            line[3 * q] = a[q];
            line[3 * q + 1] = b[q];
            line[3 * q + 2] = c[q];
        }
        break;
    case 4:
        IVDEP for (ptrdiff_t q = 0; q < count; q++) {
            line[4 * q] = a[q];
            line[4 * q + 1] = b[q];
            line[4 * q + 2] = c[q];
            line[4 * q + 3] = d[q];
        }
        break;
    default:
        for (ptrdiff_t s = 0; s < stride; s++)
            for (ptrdiff_t q = 0; q < count; q++) line[q * stride + s] = parts[s * pitch + q];
    }
}
