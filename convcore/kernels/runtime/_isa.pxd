"""The microkernels of the instruction set that was chosen at import."""

from libc.stdint cimport uint8_t, uint16_t

cdef extern from "conv/microkernels.h":
    enum:
        PLAIN "CONVCORE_PLAIN"
        CLAMP "CONVCORE_CLAMP"
        LEAKY "CONVCORE_LEAKY"

    ctypedef struct Epilogue "convcore_epilogue":
        const float *bias
        int kind
        float low
        float high
        float slope
        int add

    ctypedef struct Tiling "convcore_tiling":
        Py_ssize_t image
        Py_ssize_t channel
        Py_ssize_t[2] line
        Py_ssize_t[2] size
        Py_ssize_t[2] first
        Py_ssize_t[2] step
        Py_ssize_t[2] advance
        Py_ssize_t[2] residue_step
        Py_ssize_t[2] residues
        Py_ssize_t[2] tiles
        int narrow

    enum:
        LONGEST "CONVCORE_LONGEST_RUN"
        MOST_STRIP "CONVCORE_STRIP"

    ctypedef struct Filters "convcore_filters":
        const float *end
        Py_ssize_t lane
        Py_ssize_t sum
        Py_ssize_t first
        Py_ssize_t run
        Py_ssize_t[2] line
        Py_ssize_t[2] begin
        Py_ssize_t[2] to

    ctypedef struct Transforms "convcore_winograd":
        Py_ssize_t outputs
        Py_ssize_t taps
        Py_ssize_t points
        void (*data)(
            const Tiling *at, const float *x, Py_ssize_t channels, Py_ssize_t first,
            Py_ssize_t end, float *v, Py_ssize_t tile, Py_ssize_t point,
        ) noexcept nogil
        void (*gradients)(
            const Tiling *at, const float *gy, Py_ssize_t channels, Py_ssize_t first,
            Py_ssize_t end, float *v, Py_ssize_t tile, Py_ssize_t point,
        ) noexcept nogil
        void (*outputs_of)(
            const Tiling *at, const float *m, Py_ssize_t tile, Py_ssize_t point,
            Py_ssize_t channels, Py_ssize_t first, Py_ssize_t end, const Epilogue *epilogue,
            float *y,
        ) noexcept nogil
        void (*weights)(
            const Filters *f, const float *w, Py_ssize_t lanes, Py_ssize_t sums, float *u,
            Py_ssize_t panel, Py_ssize_t point,
        ) noexcept nogil
        void (*weight_sums)(
            const Filters *f, const float *p, Py_ssize_t point, Py_ssize_t lanes, float *gw,
        ) noexcept nogil

    ctypedef struct Tile "convcore_tile":
        Py_ssize_t terms
        const Py_ssize_t *offset
        Py_ssize_t row
        Py_ssize_t pixel
        Py_ssize_t rows
        Py_ssize_t columns
        int stream

    ctypedef struct FewChannels "convcore_few_channels":
        Py_ssize_t group
        Py_ssize_t wide
        Py_ssize_t panel
        void (*pack)(
            const float *x, Py_ssize_t step, Py_ssize_t size, Py_ssize_t first, Py_ssize_t stride,
            Py_ssize_t phases, float *halo, Py_ssize_t pitch,
        ) noexcept nogil
        void (*interleave)(
            Py_ssize_t n, const float *rows, Py_ssize_t row, Py_ssize_t count, float *out,
        ) noexcept nogil
        void (*forward_nchw)(
            const Tile *t, const float *halo, const float *w, Py_ssize_t o,
            const Epilogue *epilogue, float *y, Py_ssize_t y_row, Py_ssize_t y_channel,
        ) noexcept nogil
        void (*forward_nhwc)(
            const Tile *t, const float *halo, const float *w, Py_ssize_t o,
            const Epilogue *epilogue, float *y, Py_ssize_t y_row, Py_ssize_t y_pixel,
        ) noexcept nogil
        void (*input)(
            const Tile *t, const Py_ssize_t *term_row, Py_ssize_t stride, Py_ssize_t low,
            Py_ssize_t high, const float *gy, Py_ssize_t gy_row, Py_ssize_t gy_pixel,
            Py_ssize_t gy_channel, Py_ssize_t o, const float *w, float *scratch,
            Py_ssize_t *kept, float *halo,
        ) noexcept nogil
        void (*weight)(
            const Tile *t, const float *halo, const float *gy, Py_ssize_t gy_row,
            Py_ssize_t gy_pixel, Py_ssize_t gy_channel, Py_ssize_t o, float *scratch, float *sums,
            Py_ssize_t sums_term,
        ) noexcept nogil

    enum:
        MOST_TAPS "CONVCORE_TAPS"
        MOST_PHASES "CONVCORE_PHASES"

    ctypedef struct DirectAxis "convcore_axis":
        Py_ssize_t size
        Py_ssize_t out
        Py_ssize_t stride
        Py_ssize_t phases
        Py_ssize_t low
        Py_ssize_t span
        Py_ssize_t[9] begin
        Py_ssize_t[32] offset
        Py_ssize_t[32] tap

    ctypedef struct Direct "convcore_direct":
        DirectAxis row
        DirectAxis column
        int channels_last
        int specialisation
        Py_ssize_t channels
        Py_ssize_t size
        Py_ssize_t kernel_columns
        Py_ssize_t taps
        Py_ssize_t rows
        int narrow

    ctypedef struct Grouped "convcore_grouped":
        Direct direct
        Py_ssize_t groups
        Py_ssize_t c
        Py_ssize_t o

    enum:
        TALLEST "CONVCORE_TALLEST"

    ctypedef struct Indirect "convcore_indirect":
        void (*product)(
            Py_ssize_t m, Py_ssize_t n, Py_ssize_t taps, Py_ssize_t k, const float *const *rows,
            Py_ssize_t pitch, Py_ssize_t first, const float *b, Py_ssize_t panel,
            float *const *out, uint16_t *const *narrow, Py_ssize_t column, int add,
            const Epilogue *e, const float *next,
        ) noexcept nogil
        void (*gradient)(
            Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const float *a, Py_ssize_t step,
            const float *const *rows, Py_ssize_t first, float *c, Py_ssize_t c_row, int add,
        ) noexcept nogil
        void (*nhwc_of_nchw)(
            const float *x, Py_ssize_t channel, Py_ssize_t channels, Py_ssize_t step,
            Py_ssize_t count, Py_ssize_t line, Py_ssize_t lines, const float *end, float *out,
            Py_ssize_t row,
        ) noexcept nogil
        void (*nchw_of_nhwc)(
            const float *rows, Py_ssize_t row, Py_ssize_t count, float *y, Py_ssize_t channel,
            Py_ssize_t channels,
        ) noexcept nogil
        void (*rows_of_bfloat16)(
            const float *x, Py_ssize_t channel, Py_ssize_t channels, Py_ssize_t step,
            Py_ssize_t count, Py_ssize_t line, Py_ssize_t lines, const float *end, float *out,
            Py_ssize_t row,
        ) noexcept nogil
        void (*bfloat16_of_rows)(
            const float *rows, Py_ssize_t row, Py_ssize_t count, float *y, Py_ssize_t step,
            Py_ssize_t channels,
        ) noexcept nogil
        void (*rows_of_lanes)(
            const float *w, const float *end, Py_ssize_t lane, Py_ssize_t lanes,
            Py_ssize_t count, float *const *out,
        ) noexcept nogil

    ctypedef struct Microkernels "convcore_microkernels":
        const char *name
        Py_ssize_t lanes
        Py_ssize_t panel
        Py_ssize_t rows
        void (*product)(
            Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const float *a, Py_ssize_t a_row,
            Py_ssize_t a_column, const float *b, float *c, Py_ssize_t c_row, int add,
            const float *next,
        ) noexcept nogil
        Transforms[4] winograd
        Indirect indirect
        FewChannels few
        void (*depthwise)(
            const Direct *d, Py_ssize_t image, Py_ssize_t c0, Py_ssize_t c1, Py_ssize_t j0,
            Py_ssize_t j1, const float *x, const float *w, float *y, const Epilogue *e,
            float *scratch,
        ) noexcept nogil
        void (*depthwise_gradient)(
            const Direct *d, Py_ssize_t image, Py_ssize_t c0, Py_ssize_t c1, Py_ssize_t j0,
            Py_ssize_t j1, const float *x, const float *gy, float *sums, float *scratch,
        ) noexcept nogil
        void (*grouped)(
            const Grouped *g, Py_ssize_t image, Py_ssize_t g0, Py_ssize_t g1, Py_ssize_t j0,
            Py_ssize_t j1, const float *x, const float *w, float *y, const Epilogue *e,
            float *scratch,
        ) noexcept nogil
        void (*grouped_gradient)(
            const Grouped *g, Py_ssize_t image, Py_ssize_t g0, Py_ssize_t g1, Py_ssize_t j0,
            Py_ssize_t j1, const float *x, const float *gy, float *sums, float *scratch,
        ) noexcept nogil
        void (*sum_lanes)(const float *v, Py_ssize_t count, float *out) noexcept nogil

    enum:
        BFLOAT16_BLOCK "CONVCORE_BFLOAT16_BLOCK"

    ctypedef struct Bfloat16 "convcore_bfloat16":
        const char *name
        Py_ssize_t words
        void (*words_of_nchw)(
            const float *x, Py_ssize_t channel, Py_ssize_t channels, Py_ssize_t step,
            Py_ssize_t count, Py_ssize_t line, Py_ssize_t lines, const float *end, float *out,
            Py_ssize_t row,
        ) noexcept nogil
        void (*words_of_bfloat16)(
            const float *x, Py_ssize_t channel, Py_ssize_t channels, Py_ssize_t step,
            Py_ssize_t count, Py_ssize_t line, Py_ssize_t lines, const float *end, float *out,
            Py_ssize_t row,
        ) noexcept nogil
        void (*words_of_weights)(
            const float *w, Py_ssize_t width, Py_ssize_t term, float *block,
        ) noexcept nogil
        void (*words_of_rows)(
            const float *const *rows, int narrow, Py_ssize_t blocks, Py_ssize_t lanes, float *out,
        ) noexcept nogil
        void (*product)(
            Py_ssize_t m, Py_ssize_t n, Py_ssize_t taps, Py_ssize_t blocks,
            const float *const *rows, Py_ssize_t pitch, Py_ssize_t first, const float *b,
            Py_ssize_t panel, float *const *out, int narrow, Py_ssize_t column, int add,
            const Epilogue *e,
        ) noexcept nogil
        void (*gradient)(
            Py_ssize_t m, Py_ssize_t n, Py_ssize_t blocks, const float *a,
            const float *const *rows, int narrow, float *c, Py_ssize_t c_row, int add,
        ) noexcept nogil

cdef extern from "layers/pooling.h":
    enum:
        NOWHERE "CONVCORE_NOWHERE"
        PIECE "CONVCORE_PIECE"

    ctypedef struct Windows "convcore_windows":
        Py_ssize_t size
        Py_ssize_t out
        Py_ssize_t kernel
        Py_ssize_t dilation
        Py_ssize_t stride
        Py_ssize_t before
        const Py_ssize_t *start
        const Py_ssize_t *low
        const Py_ssize_t *high
        const Py_ssize_t *first
        const Py_ssize_t *end

    ctypedef struct MaxPool "convcore_max_pool":
        Windows[3] axis
        Py_ssize_t channels

    ctypedef struct AxisWeights "convcore_axis_weights":
        Py_ssize_t size
        Py_ssize_t out
        const Py_ssize_t *begin
        const Py_ssize_t *source "from"
        const Py_ssize_t *gather
        const void *weight
        Py_ssize_t phases
        Py_ssize_t stride
        Py_ssize_t low
        Py_ssize_t high
        int run
        int identity
        int copies
        int two_tap
        const void *divisor

    ctypedef struct Separable "convcore_separable":
        AxisWeights[3] axis
        Py_ssize_t channels
        double divisor

    ctypedef struct Pooling "convcore_pooling":
        void (*max_pool)(
            const MaxPool *m, const void *x, Py_ssize_t d, Py_ssize_t h, void *y, uint8_t *taps,
            void *scratch,
        ) noexcept nogil
        void (*max_pool_gradient_nhwc)(
            const MaxPool *m, const void *gy, const uint8_t *taps, Py_ssize_t d, Py_ssize_t h,
            void *gx,
        ) noexcept nogil
        void (*max_pool_gradient_nchw)(
            const MaxPool *m, const void *gy, const uint8_t *taps, void *gx,
        ) noexcept nogil
        void (*separable)(
            const Separable *s, const void *x, Py_ssize_t d, Py_ssize_t h, void *y, void *scratch,
        ) noexcept nogil

cdef extern from "layers/microkernels.h":
    enum:
        OP_COUNT "CONVCORE_OPS"

    ctypedef struct OpLoops "convcore_op_loops":
        void (*forward)(
            const void *x, Py_ssize_t count, const double *params, void *y,
        ) noexcept nogil
        void (*gradient)(
            const void *gy, const void *saved, Py_ssize_t count, const double *params, void *gx,
        ) noexcept nogil

    ctypedef struct Op "convcore_op":
        const char *name
        const char *saved
        int params
        double cost
        OpLoops[2] loops

    enum:
        LINEAR "CONVCORE_LINEAR"
        FROM_INPUT "CONVCORE_FROM_INPUT"
        FROM_RESULT "CONVCORE_FROM_RESULT"

    ctypedef struct NormParameters "convcore_norm_parameters":
        const void *mean
        const void *scale
        const void *bias
        const void *slope
        const void *offset
        double low
        double high
        int activation

    ctypedef struct NormNchw "convcore_norm_nchw":
        void (*moments)(
            const void *x, Py_ssize_t count, Py_ssize_t planes, Py_ssize_t step, double shift,
            double *sums,
        ) noexcept nogil
        void (*forward)(
            const void *x, const void *residual, Py_ssize_t count, Py_ssize_t planes,
            Py_ssize_t step, const NormParameters *p, void *y,
        ) noexcept nogil
        void (*gradient_sums)(
            const void *gy, const void *x, const void *y, Py_ssize_t count, Py_ssize_t planes,
            Py_ssize_t step, const NormParameters *p, void *masked, double *sums,
        ) noexcept nogil
        void (*gradient)(
            const void *gy, const void *x, Py_ssize_t count, Py_ssize_t planes, Py_ssize_t step,
            const NormParameters *p, void *gx,
        ) noexcept nogil

    ctypedef struct NormNhwc "convcore_norm_nhwc":
        void (*moments)(
            const void *x, Py_ssize_t pixels, Py_ssize_t channels, const double *shift,
            double *sums, Py_ssize_t row,
        ) noexcept nogil
        void (*forward)(
            const void *x, const void *residual, Py_ssize_t pixels, Py_ssize_t channels,
            const NormParameters *p, void *y,
        ) noexcept nogil
        void (*gradient_sums)(
            const void *gy, const void *x, const void *y, Py_ssize_t pixels, Py_ssize_t channels,
            const NormParameters *p, void *masked, double *sums, Py_ssize_t row,
        ) noexcept nogil
        void (*gradient)(
            const void *gy, const void *x, Py_ssize_t pixels, Py_ssize_t channels,
            const NormParameters *p, void *gx,
        ) noexcept nogil

    enum:
        ROWS "CONVCORE_ROWS"

    ctypedef struct LayerNorm "convcore_layer_norm":
        void (*forward)(
            const void *x, Py_ssize_t count, double mean, double root, const void *parameters,
            void *y,
        ) noexcept nogil
        void (*gradient)(
            const void *gy, const void *x, Py_ssize_t rows, Py_ssize_t count, const double *mean,
            const double *root, const void *parameters, void *gx, double *sums,
        ) noexcept nogil

    enum:
        SGD "CONVCORE_SGD"
        ADAM "CONVCORE_ADAM"
        RMSPROP "CONVCORE_RMSPROP"
        RULES "CONVCORE_RULES"

    ctypedef void (*Step "convcore_step")(
        void *const *arrays, Py_ssize_t start, Py_ssize_t count, const double *settings, int flags,
    ) noexcept nogil

    ctypedef struct Clipping "convcore_clipping":
        double (*squares)(const void *v, Py_ssize_t count) noexcept nogil
        void (*scale)(void *v, Py_ssize_t count, double factor) noexcept nogil
        void (*clip)(void *v, Py_ssize_t count, double bound) noexcept nogil

    ctypedef struct Moments "convcore_moments":
        double count
        double mean
        double squares
        double least
        double largest
        double zeros
        double nan

    ctypedef void (*MomentsOf "convcore_moments_of")(
        const void *v, Py_ssize_t count, Moments *found,
    ) noexcept nogil

    enum:
        MOST_COLUMNS "CONVCORE_MOST_COLUMNS"

    ctypedef struct Softmax "convcore_softmax":
        void (*rows)(
            const void *x, Py_ssize_t rows, Py_ssize_t count, int log, void *y,
        ) noexcept nogil
        void (*rows_gradient)(
            const void *gy, const void *y, Py_ssize_t rows, Py_ssize_t count, int log, void *gx,
        ) noexcept nogil
        void (*columns)(
            const void *x, Py_ssize_t columns, Py_ssize_t count, Py_ssize_t step, int log,
            void *y,
        ) noexcept nogil
        void (*columns_gradient)(
            const void *gy, const void *y, Py_ssize_t columns, Py_ssize_t count, Py_ssize_t step,
            int log, void *gx,
        ) noexcept nogil

    enum:
        MOST_CHANNELS "CONVCORE_MOST_CHANNELS"

    ctypedef struct Sums "convcore_sums":
        void (*nchw)(const void *x, Py_ssize_t count, double *sum) noexcept nogil
        void (*nhwc)(
            const void *x, Py_ssize_t pixels, Py_ssize_t channels, Py_ssize_t step, double *sums,
        ) noexcept nogil

    ctypedef struct FewRows "convcore_few_rows":
        void (*plain)(
            Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const float *a, Py_ssize_t a_row,
            Py_ssize_t a_column, const float *b, Py_ssize_t b_row, float *c, Py_ssize_t c_row,
        ) noexcept nogil
        void (*transposed)(
            Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const float *a, Py_ssize_t a_row,
            const float *b, Py_ssize_t b_row, float *c, Py_ssize_t c_row,
        ) noexcept nogil

    ctypedef struct NarrowLayers "convcore_narrow":
        void (*widen)(const void *x, Py_ssize_t count, void *y) noexcept nogil
        void (*round)(const void *x, Py_ssize_t count, void *y) noexcept nogil
        void (*max_pool)(
            const MaxPool *m, const void *x, Py_ssize_t d, Py_ssize_t h, void *y,
        ) noexcept nogil

    ctypedef struct LayerMicrokernels "convcore_layer_microkernels":
        const char *name
        LayerNorm[2] layer_norm
        NormNchw[2] norm_nchw
        NormNhwc[2] norm_nhwc
        Op[64] ops               # the first OP_COUNT
        Step[8][2] steps         # the first RULES rows
        Pooling[2] pooling
        Clipping[2] clipping
        MomentsOf[2] moments
        Softmax[2] softmax
        Sums[2] sums
        FewRows few_rows
        NarrowLayers narrow

cdef const Microkernels *microkernels() noexcept nogil
cdef const Bfloat16 *bfloat16() noexcept nogil
cdef const LayerMicrokernels *layer_microkernels() noexcept nogil
cdef Filters filters(dict fields)
