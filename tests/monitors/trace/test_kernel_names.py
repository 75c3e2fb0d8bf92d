"""What a kernel's name tells of it: names of many libraries and of their versions."""

import pytest

from warpbook_monitors.trace.kernels import is_communication, uses_tensor_cores

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
    ("names", "told"), [(TENSOR, True), (PLAIN, False), (UNKNOWN, None)]
)
def test_the_unit_is_told_where_the_name_tells_it(
    names: tuple[str, ...], told: bool | None
) -> None:
    assert {name: uses_tensor_cores(name) for name in names} == dict.fromkeys(
        names, told
    )


def test_communication_is_told_from_computing() -> None:
    wrong = [name for name in COMMUNICATION if not is_communication(name)]
    wrong += [
        name
        for name in (*TENSOR, *PLAIN, *UNKNOWN, *NO_COMMUNICATION)
        if is_communication(name)
    ]
    assert not wrong
    assert not any(map(uses_tensor_cores, COMMUNICATION))
