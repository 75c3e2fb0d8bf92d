"""What a kernel's name tells of it: names of many libraries and of their versions."""

from pathlib import Path

import pytest

from tests.profiler.trace.written import call, kernel, report_of, trace
from warpbook_profiler.facts.kernels import is_communication, uses_tensor_cores

_FLASH = "void pytorch_flash::flash"
TENSOR = (
    # cuBLAS, from Volta to Blackwell
    "volta_fp16_s884gemm_fp16_256x128_ldg8_f2f_nn",
    "turing_fp16_s1688gemm_fp16_128x64_ldg8_f2f_tn",
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
    "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_tensor16x8x16_kernel",
    # FP32 that is multiplied as TF32
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1",
    "sm100_xmma_gemm_e4m3bf16_e4m3f32_f32_tn",
    "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_TNT",
    # CUTLASS, cuDNN, attention, Triton's templates
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128>",
    "void cutlass::device_kernel<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized>",
    "sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nchw",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x64",
    f"{_FLASH}_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>",
    f"{_FLASH}_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128>>",
    "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloop>>",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention)",
    "triton_tem_fused_addmm_relu_3",
    # AMD's matrix cores: Tensile, MIOpen, AOTriton; and Triton's and TensorRT-LLM's
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN",
    "Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x64_MI16x16x1_SN",
    "igemm_wrw_gtcx2_nhwc_bf16_bx0_ex1_bt256x128x16_wt32x32x8_ws2x1_wr2x2",
    "attn_fwd",
    "kernel_unified_attention_2d",
    "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu",
    "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_tmaOpt_clmp_sm100f",
    # a helper of a library in its arguments makes it none
    "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<wgmma>>",
)
PLAIN = (
    "volta_sgemm_128x64_nn",
    "ampere_dgemm_64x64_tn",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_ffma_aligna4",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(T1::Params)",
    "void gemv2T_kernel_val<int, int, __nv_bfloat16, float, 128, 16, 4, 4>",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>",
    "ampere_scudnn_128x64_relu_medium_nn_v1",
    "void cudnn::ops::nhwcToNchwKernel<__half, __half, float, true, false>",
    # beside the products of attention
    f"{_FLASH}_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<128>>",
    f"{_FLASH}_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<64>>",
    "void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<tuple<64, 128>>>",
    "void splitKreduce_kernel<float, __half, int>",
    "void nchwToNhwcKernel<__half, __half, float, true, false>",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10>",
    "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<Policy800>",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add>",
    "triton_poi_fused_add_mul_native_layer_norm_7",
    "void vllm::rms_norm_kernel<c10::BFloat16>",
    "Cijk_Ailk_Bljk_SB_MT128x64x16_MI32x32x2_SN",
    "Cijk_Ailk_Bljk_DB_MT64x64x8_MI16x16x1_SN",
    "igemm_fwd_gtcx2_nhwc_fp32_bx0_ex1_bt256x128x16",
    "SubTensorOpWithCastTensor1d",
    "batched_transpose_16x64_pack_1x4_ediv_1x2_half",
    "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePass",
    "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1E",
    "std::enable_if<true, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16>",
    "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16>",
    "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16>",
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>",
    "triton__0d1d2d3d4d5d6d",
)
UNKNOWN = (
    "matmul_kernel",
    "_attn_fwd",
    "void marlin::Marlin<256, 1>",
    "triton_mm",
    "",
    # products of experts, whose words are no library's
    "_scatter2scatter",
    "fused_gather_gemm_kernel",
    "sorted_expert_matmul(float*)",
    "void grouped_product<cub::BlockReduce<float, 128>>",
    # Inductor writes the operators into the name, here of no known kind
    "triton_unk_fused_index_scatter_sort_0",
    "triton_unk_fused_flash_fwd_0",
)
COMMUNICATION = (
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    # before NCCL 2.19, and before 2.13
    "ncclKernel_AllReduce_RING_LL_Sum_half(ncclDevComm*, unsigned long, ncclWork*)",
    "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
    "void rcclGenericKernel<1, false>(ncclDevComm*)",
    # without NCCL: symmetric memory, vLLM, TensorRT-LLM
    "multimem_all_reduce_kernel",
    "void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16>",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>",
    "oneShotAllReduceKernel",
)
# words of communication, in names that its libraries do not own
NO_COMMUNICATION = (
    "void warpAllReduceSoftmax<float>",
    # Inductor's pointwise kernels before and after a collective
    "triton_poi_fused_all_reduce_0",
    "triton_poi_fused_add_all_gather_into_tensor_wait_tensor_3",
    "gather_all_to_all_tokens_moe_local(float*)",
)


@pytest.mark.parametrize(
    ("names", "unit"), [(TENSOR, True), (PLAIN, False), (UNKNOWN, None)]
)
def test_the_unit_is_told_where_the_name_tells_it(
    names: tuple[str, ...], unit: bool | None
) -> None:
    assert {name: uses_tensor_cores(name) for name in names} == dict.fromkeys(
        names, unit
    )


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        # few rows for each weight that is read, as in decoding: the tile is as narrow
        ("Cijk_Alik_Bljk_BBS_BH_UserArgs_MT32x32x256_MI16x16x1_SN", "memory"),
        ("Cijk_Alik_Bljk_BBS_BH_UserArgs_MT256x192x64_MI16x16x1_SN", "tensor cores"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "memory"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1", "tensor cores"),
        ("nvjet_tst_64x16_64x16_2x4_2cta_h_bz_bias_TNT", "memory"),
        ("nvjet_sm90_tst_192x192_64x4_1x2_h_bz_coopA_NTN", "tensor cores"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "tensor cores"),
        ("Cijk_Ailk_Bljk_SB_MT128x64x16_MI32x32x2_SN", "FP32 cores"),
        ("Cijk_Ailk_Bljk_DB_MT64x64x8_MI16x16x1_SN", "FP64 units"),
        ("triton_poi_fused_add_3", "memory"),
        ("my_own_kernel(float*)", "unknown"),
    ],
)
def test_what_limits_a_kernel_is_told_by_its_name_where_nothing_else_is(
    name: str, limit: str, tmp_path: Path
) -> None:
    """As in a CUDA graph, whose kernels have no operator."""
    graph = call(5, 0.0, name="cudaGraphLaunch")
    work = [kernel(5, 10.0 + 51 * at, name=name, dur=50.0) for at in range(50)]
    (work_of_kernel,) = report_of(tmp_path, trace(graph, *work)).metrics.kernel_work
    assert work_of_kernel.bound == limit


def test_communication_is_told_from_computing() -> None:
    wrong = [name for name in COMMUNICATION if not is_communication(name)]
    wrong += [
        name
        for name in (*TENSOR, *PLAIN, *UNKNOWN, *NO_COMMUNICATION)
        if is_communication(name)
    ]
    assert not wrong
    assert not any(map(uses_tensor_cores, COMMUNICATION))
