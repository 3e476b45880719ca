"""Layers of published nets of every kind, a line each: the text of `parse_layer`, and a name.

The first table has the layers of the topologies that oneDNN's benchmark benchdnn measures, under
their names there, with batches cut so that a pass costs at most about 2 GFLOP.  The second adds
kinds that it has not: transposed convolutions, long and large kernels, patch embeddings, sound,
images of one channel, layers on maps of one pixel.
"""

from __future__ import annotations

LINES = """\
1d:8,32,164,32,2                            1d_wavenet conv1d_10
1d:1,512,812,256,1                          1d_wavenet conv1d_1x1_2
1d:2,32,42175,32,2                          1d_wavenet conv1d_2
1d:4,32,21087,32,2                          1d_wavenet conv1d_3
1d:8,32,10543,32,2                          1d_wavenet conv1d_4
1d:8,32,2635,32,2                           1d_wavenet conv1d_6
1d:8,32,1317,32,2                           1d_wavenet conv1d_7
1d:8,32,329,32,2                            1d_wavenet conv1d_9
3d:2,24,16,14,14,64,3,1,1                   3d_i3d 1
3d:2,512,16,14,14,112,1                     3d_i3d 1
3d:2,512,16,14,14,64,1                      3d_i3d 1
3d:1,256,32,28,28,128,1                     3d_i3d 1
3d:1,160,8,7,7,320,3,1,1                    3d_i3d 1
3d:2,192,32,28,28,96,1                      3d_i3d 1
3d:1,32,32,28,28,96,3,1,1                   3d_i3d 1
3d:1,128,16,14,14,256,3,1,1                 3d_i3d 1
3d:2,256,32,28,28,32,1                      3d_i3d 1
3d:2,192,32,28,28,32,1                      3d_i3d 1
3d:1,192,8,7,7,384,3,1,1                    3d_i3d 1
3d:2,16,16,14,14,48,3,1,1                   3d_i3d 1
3d:2,512,16,14,14,144,1                     3d_i3d 1
3d:2,480,16,14,14,192,1                     3d_i3d 1
3d:2,1024,7,1,1,101,1                       3d_i3d 1
3d:2,32,8,7,7,128,3,1,1                     3d_i3d 1
3d:2,832,8,7,7,256,1                        3d_i3d 1
3d:1,112,16,14,14,224,3,1,1                 3d_i3d 1
3d:2,832,8,7,7,48,1                         3d_i3d 1
3d:1,96,16,14,14,208,3,1,1                  3d_i3d 1
3d:2,32,16,14,14,128,3,1,1                  3d_i3d 1
3d:2,528,16,14,14,256,1                     3d_i3d 1
3d:2,832,8,7,7,32,1                         3d_i3d 1
3d:2,528,16,14,14,32,1                      3d_i3d 1
3d:2,528,16,14,14,160,1                     3d_i3d 1
3d:2,192,32,28,28,64,1                      3d_i3d 1
3d:2,16,32,28,28,32,3,1,1                   3d_i3d 1
3d:2,64,32,56,56,64,1                       3d_i3d 1
3d:2,480,16,14,14,16,1                      3d_i3d 1
3d:2,256,32,28,28,64,1                      3d_i3d 1
3d:5,64,8,56,56,64,3,1,1,1,16               3d_resnext101 1
3d:5,256,2,14,14,512,3,1,1,1,8              3d_resnext101 13
3d:2,512,8,56,56,128,3,2,1,1,16             3d_resnext101 18
3d:5,1024,4,28,28,256,3,2,1,1,16            3d_resnext101 21
3d:6,256,2,14,14,1024,1,1,0,1,16            3d_resnext101 22
3d:6,512,1,7,7,2048,1,1,0,1,16              3d_resnext101 25
3d:6,64,8,56,56,256,1,1,0,1,8               3d_resnext101 26
3d:1,256,8,56,56,64,3,1,1,1,8               3d_resnext101 27
3d:2,256,8,56,56,512,1,1,0,1,8              3d_resnext101 28
3d:6,128,4,28,28,512,1,1,0,1,8              3d_resnext101 30
3d:6,256,2,14,14,1024,1,1,0,1,8             3d_resnext101 33
3d:6,1024,2,14,14,2048,1,1,0,1,8            3d_resnext101 34
3d:5,2048,2,14,14,512,3,2,1,1,8             3d_resnext101 35
3d:6,512,1,7,7,2048,1,1,0,1,8               3d_resnext101 36
3d:5,128,4,28,28,256,3,1,1,1,16             3d_resnext101 4
3d:6,512,2,14,14,512,3,2,1,1,16             3d_resnext101 7
3d:2,64,8,56,56,64,3,1,1,1,8                3d_resnext101 8
1,48,320,512,32,1                           cosmictagger 11
1,48,160,256,48,3,1,1                       cosmictagger 12
1,64,80,128,64,3,1,1                        cosmictagger 15
1,64,40,64,80,1                             cosmictagger 16
1,80,80,128,64,1                            cosmictagger 17
1,80,40,64,80,3,1,1                         cosmictagger 18
1,96,10,16,112,1                            cosmictagger 20
1,1,640,1024,16,7,1,3                       cosmictagger 4
1,256,10,16,336,1                           cosmictagger 6
1,32,160,256,48,1                           cosmictagger 9
1,256,14,14,1024,1                          deepbench_inference_device 1
1,256,56,56,128,1,2                         deepbench_inference_device 1
1,512,7,7,512,3,1,1                         deepbench_inference_device 1
1,512,28,28,128,1                           deepbench_inference_device 1
1,512,7,7,2048,1                            deepbench_inference_device 1
1,128,28,28,512,1                           deepbench_inference_device 1
1,64,112,112,64,1                           deepbench_inference_device 1
1,2048,7,7,512,1                            deepbench_inference_device 1
1,1024,14,14,2048,1,2                       deepbench_inference_device 1
8,128,28,28,512,1,2                         deepbench_training 1
3,32,79,341,32,5x10,2                       deepbench_training 1
8,3,108,108,64,3,2,1                        deepbench_training 1
8,16,24,240,32,3,1,1                        deepbench_training 1
8,64,6,60,128,3,1,1                         deepbench_training 1
8,192,28,28,32,5,1,2                        deepbench_training 1
1,256,20,84,512,5,2,1                       deepbench_training 1
1,256,20,84,256,3,1,1                       deepbench_training 1
8,32,12,120,64,3,1,1                        deepbench_training 1
8,256,7,7,512,3,1,1                         deepbench_training 1
1,128,40,175,256,5,2,1                      deepbench_training 1
8,512,7,7,512,1                             deepbench_training 1
8,64,56,56,256,1,2                          deepbench_training 1
8,64,54,54,64,3,1,1                         deepbench_training 1
8,512,14,14,48,5,1,2                        deepbench_training 1
1,64,80,350,64,3,1,1                        deepbench_training 1
1,124,32,32,12,3,1,1                        densnet conv10
1,136,32,32,12,3,1,1                        densnet conv11
1,160,16,16,12,3,1,1                        densnet conv13
1,184,16,16,12,3,1,1                        densnet conv15
1,256,16,16,12,3,1,1                        densnet conv21
1,292,16,16,12,3,1,1                        densnet conv24
1,304,8,8,12,3,1,1                          densnet conv25
1,340,8,8,12,3,1,1                          densnet conv28
1,352,8,8,12,3,1,1                          densnet conv29
1,388,8,8,12,3,1,1                          densnet conv32
1,400,8,8,12,3,1,1                          densnet conv33
1,436,8,8,12,3,1,1                          densnet conv36
1,52,32,32,12,3,1,1                         densnet conv4
1,100,32,32,12,3,1,1                        densnet conv8
8,4,18,18,6,7,3,1,3                         dilated 10
8,4,8,8,6,3,1x3,1,1x3                       dilated 12
2,3,227,227,48,5,2,1,2                      dilated 18
2,3,227,227,48,5,2x3,0,2x3                  dilated 19
2,64,11,11,128,3,1,1,3                      dilated 21
2,192,11,11,128,3,1,1,3,2                   dilated 23
8,4,12,12,6,5,3,1,3                         dilated 8
1,96,128,128,24,1                           efficientdet conv10
1,144,1,1,6,1                               efficientdet conv13
1,144,128,128,24,1                          efficientdet conv15
1,144,64,64,40,1                            efficientdet conv17
1,40,64,64,240,1                            efficientdet conv18
1,32,256,256,32,3,1,1,1,32                  efficientdet conv2
1,10,1,1,240,1                              efficientdet conv21
1,240,64,64,40,1                            efficientdet conv22
1,80,32,32,480,1                            efficientdet conv25
1,480,32,32,480,3,1,1,1,480                 efficientdet conv26
1,480,1,1,20,1                              efficientdet conv27
1,480,32,32,80,1                            efficientdet conv29
1,480,32,32,480,5,1,2,1,480                 efficientdet conv30
1,112,32,32,672,1                           efficientdet conv32
1,672,32,32,672,5,1,2,1,672                 efficientdet conv33
1,672,1,1,28,1                              efficientdet conv34
1,672,32,32,112,1                           efficientdet conv36
1,1152,16,16,1152,5,1,2,1,1152              efficientdet conv40
1,48,1,1,1152,1                             efficientdet conv42
1,1152,16,16,320,1                          efficientdet conv45
1,320,16,16,64,1                            efficientdet conv46
1,64,8,8,64,3,1,1,1,64                      efficientdet conv47
1,64,8,8,64,1                               efficientdet conv48
1,64,16,16,64,3,1,1,1,64                    efficientdet conv49
1,64,16,16,64,1                             efficientdet conv50
1,112,32,32,64,1                            efficientdet conv51
1,64,32,32,64,3,1,1,1,64                    efficientdet conv52
1,64,32,32,64,1                             efficientdet conv53
1,64,64,64,64,1                             efficientdet conv56
1,64,4,4,64,1                               efficientdet conv58
1,16,256,256,96,1                           efficientdet conv6
1,64,64,64,36,1                             efficientdet conv60
1,64,32,32,36,1                             efficientdet conv62
1,64,16,16,810,1                            efficientdet conv63
1,64,16,16,36,1                             efficientdet conv64
1,64,8,8,36,1                               efficientdet conv66
1,4,1,1,96,1                                efficientdet conv9
1,128,75,94,128,3,1,1                       fastrcnn_p1 conv10
1,128,75,94,512,1                           fastrcnn_p1 conv11
1,512,75,94,128,1                           fastrcnn_p1 conv12
1,128,38,47,512,1                           fastrcnn_p1 conv14
1,256,38,47,1024,1                          fastrcnn_p1 conv17
1,1024,38,47,256,1                          fastrcnn_p1 conv19
1,512,38,47,48,1                            fastrcnn_p1 conv21
1,64,150,188,64,3,1,1                       fastrcnn_p1 conv3
1,64,150,188,256,1                          fastrcnn_p1 conv4
1,256,150,188,64,1                          fastrcnn_p1 conv5
1,64,152,190,64,3,2                         fastrcnn_p1 conv6
1,64,75,94,256,1                            fastrcnn_p1 conv7
1,256,75,94,128,1                           fastrcnn_p1 conv8
8,1024,7,7,2048,1                           fastrcnn_p2 conv4
3d:4,2,33,33,33,32,3,1,1                    ffn 0
3d:4,32,33,33,33,1,1                        ffn 1
8,64,56,56,64,1                             googlenet_v1 conv2/3x3_reduce
8,192,28,28,64,1                            googlenet_v1 inception_3a/1x1
8,192,28,28,32,1                            googlenet_v1 inception_3a/pool_proj
8,256,28,28,128,1                           googlenet_v1 inception_3b/1x1
5,128,28,28,192,3,1,1                       googlenet_v1 inception_3b/3x3
8,256,28,28,32,1                            googlenet_v1 inception_3b/5x5_reduce
8,256,28,28,64,1                            googlenet_v1 inception_3b/pool_proj
8,480,14,14,192,1                           googlenet_v1 inception_4a/1x1
8,96,14,14,208,3,1,1                        googlenet_v1 inception_4a/3x3
8,480,14,14,16,1                            googlenet_v1 inception_4a/5x5_reduce
8,480,14,14,64,1                            googlenet_v1 inception_4a/pool_proj
8,512,14,14,160,1                           googlenet_v1 inception_4b/1x1
8,112,14,14,224,3,1,1                       googlenet_v1 inception_4b/3x3
8,512,14,14,24,1                            googlenet_v1 inception_4b/5x5_reduce
8,512,14,14,64,1                            googlenet_v1 inception_4b/pool_proj
8,512,14,14,128,1                           googlenet_v1 inception_4c/1x1
8,128,14,14,256,3,1,1                       googlenet_v1 inception_4c/3x3
8,512,14,14,144,1                           googlenet_v1 inception_4d/3x3_reduce
8,512,14,14,32,1                            googlenet_v1 inception_4d/5x5_reduce
8,528,14,14,256,1                           googlenet_v1 inception_4e/1x1
8,160,14,14,320,3,1,1                       googlenet_v1 inception_4e/3x3
8,528,14,14,160,1                           googlenet_v1 inception_4e/3x3_reduce
8,32,14,14,128,5,1,2                        googlenet_v1 inception_4e/5x5
8,528,14,14,32,1                            googlenet_v1 inception_4e/5x5_reduce
8,832,7,7,256,1                             googlenet_v1 inception_5a/1x1
8,832,7,7,160,1                             googlenet_v1 inception_5a/3x3_reduce
8,32,7,7,128,5,1,2                          googlenet_v1 inception_5a/5x5
8,832,7,7,128,1                             googlenet_v1 inception_5a/pool_proj
8,832,7,7,192,1                             googlenet_v1 inception_5b/3x3_reduce
8,48,7,7,128,5,1,2                          googlenet_v1 inception_5b/5x5
8,832,7,7,48,1                              googlenet_v1 inception_5b/5x5_reduce
8,512,4,4,128,1                             googlenet_v1 loss1/conv
8,64,28,28,64,3,1,1                         googlenet_v2 inception_3a/3x3
8,64,28,28,96,3,1,1                         googlenet_v2 inception_3a/double3x3a
8,96,28,28,96,3,1,1                         googlenet_v2 inception_3a/double3x3b
8,128,28,28,160,3,2,1                       googlenet_v2 inception_3c/3x3
8,320,28,28,128,1                           googlenet_v2 inception_3c/3x3_reduce
8,576,14,14,224,1                           googlenet_v2 inception_4a/1x1
8,96,14,14,128,3,1,1                        googlenet_v2 inception_4a/double3x3a
8,128,14,14,160,3,1,1                       googlenet_v2 inception_4c/3x3
8,128,14,14,192,3,1,1                       googlenet_v2 inception_4d/3x3
8,160,14,14,192,3,1,1                       googlenet_v2 inception_4d/double3x3a
8,256,14,14,256,3,2,1                       googlenet_v2 inception_4e/double3x3b
8,192,7,7,320,3,1,1                         googlenet_v2 inception_5a/3x3
8,1024,7,7,160,1                            googlenet_v2 inception_5a/double3x3_reduce
8,160,7,7,224,3,1,1                         googlenet_v2 inception_5a/double3x3a
8,224,7,7,224,3,1,1                         googlenet_v2 inception_5a/double3x3b
8,1024,7,7,128,1                            googlenet_v2 inception_5a/pool_proj
8,192,7,7,224,3,1,1                         googlenet_v2 inception_5b/double3x3a
8,1024,2,2,128,1                            googlenet_v2 loss2/conv
5,32,149,149,32,3                           googlenet_v3 conv_1_1_conv2d
2,32,147,147,64,3,1,1                       googlenet_v3 conv_2_2_conv2d
8,64,73,73,80,1                             googlenet_v3 conv_3_3_conv2d
8,2048,8,8,320,1                            googlenet_v3 mixed_10_conv_conv2d
8,288,35,35,48,1                            googlenet_v3 mixed_2_tower_conv_conv2d
8,96,35,35,96,3,2                           googlenet_v3 mixed_3_tower_conv_2_conv2d
8,768,17,17,192,1                           googlenet_v3 mixed_4_conv_conv2d
8,128,17,17,128,7x1,1,3x0                   googlenet_v3 mixed_4_tower_1_conv_1_conv2d
8,128,17,17,192,1x7,1,0x3                   googlenet_v3 mixed_4_tower_1_conv_4_conv2d
8,768,17,17,128,1                           googlenet_v3 mixed_4_tower_conv_conv2d
8,160,17,17,192,1x7,1,0x3                   googlenet_v3 mixed_5_tower_1_conv_4_conv2d
8,160,17,17,160,1x7,1,0x3                   googlenet_v3 mixed_5_tower_conv_1_conv2d
8,160,17,17,192,7x1,1,3x0                   googlenet_v3 mixed_5_tower_conv_2_conv2d
8,192,17,17,192,1x7,1,0x3                   googlenet_v3 mixed_7_tower_conv_1_conv2d
8,192,17,17,320,3,2                         googlenet_v3 mixed_8_tower_conv_1_conv2d
8,1280,8,8,320,1                            googlenet_v3 mixed_9_conv_conv2d
8,1280,8,8,448,1                            googlenet_v3 mixed_9_tower_1_conv_conv2d
8,1280,8,8,192,1                            googlenet_v3 mixed_9_tower_2_conv_conv2d
8,1280,8,8,384,1                            googlenet_v3 mixed_9_tower_conv_conv2d
8,384,8,8,384,3x1,1,1x0                     googlenet_v3 mixed_9_tower_mixed_conv_1_conv2d
8,384,8,8,384,1x3,1,0x1                     googlenet_v3 mixed_9_tower_mixed_conv_conv2d
8,64,35,35,96,3,1,1                         googlenet_v3 mixed_tower_1_conv_1_conv2d
8,96,35,35,96,3,1,1                         googlenet_v3 mixed_tower_1_conv_2_conv2d
8,192,35,35,32,1                            googlenet_v3 mixed_tower_2_conv_conv2d
1,3,1030,1030,64,7,2                        maskrcnn_p1 conv1
1,512,128,128,128,1                         maskrcnn_p1 conv11
1,256,64,64,256,3,1,1                       maskrcnn_p1 conv13
1,256,64,64,1024,1                          maskrcnn_p1 conv14
1,512,128,128,256,1                         maskrcnn_p1 conv15
1,512,128,128,1024,1,2                      maskrcnn_p1 conv16
1,1024,64,64,2048,1,2                       maskrcnn_p1 conv18
1,512,32,32,512,3,1,1                       maskrcnn_p1 conv20
1,2048,32,32,512,1                          maskrcnn_p1 conv22
1,512,32,32,12,1                            maskrcnn_p1 conv27
1,512,16,16,12,1                            maskrcnn_p1 conv30
1,512,128,128,6,1                           maskrcnn_p1 conv36
1,512,128,128,12,1                          maskrcnn_p1 conv37
1,512,256,256,6,1                           maskrcnn_p1 conv40
1,512,256,256,12,1                          maskrcnn_p1 conv41
8,1024,1,1,1024,1                           maskrcnn_p2 conv2
8,256,28,28,256,2,2                         maskrcnn_p2 conv4
8,3,224,224,32,3,2,1                        mobilenet conv1
8,1024,1,1,5,1                              mobilenet conv11
8,64,56,56,128,1                            mobilenet conv3
8,128,56,56,128,1                           mobilenet conv4
8,256,14,14,512,1                           mobilenet conv7
8,512,7,7,1024,1                            mobilenet conv9
1,64,112,112,64,3,2,1,1,64                  mobilenet_dw conv2_2/dw
1,128,56,56,128,3,2,1,1,128                 mobilenet_dw conv3_2/dw
1,256,28,28,256,3,1,1,1,256                 mobilenet_dw conv4_1/dw
1,256,28,28,256,3,2,1,1,256                 mobilenet_dw conv4_2/dw
1,1024,7,7,1024,3,1,1,1,1024                mobilenet_dw conv6/dw
3d:1,344,8,7,7,344,1x5x5,1,0x2x2,1,344      movinet_dw conv_7
1,128,1,15000,1024,1                        pointnet 1
2,256,1,15000,128,1                         pointnet 3
8,4,1,15000,64,1                            pointnet 4
8,64,1,15000,64,1                           pointnet 7
8,64,56,56,256,1                            resnet_50 res2a_branch1
8,256,56,56,64,1                            resnet_50 res2b_branch2a
8,128,28,28,128,3,1,1                       resnet_50 res3a_branch2b
8,512,28,28,256,1,2                         resnet_50 res4a_branch2a
8,256,14,14,1024,1                          resnet_50 res4a_branch2c
8,1024,14,14,256,1                          resnet_50 res4b_branch2a
8,1024,14,14,2048,1,2                       resnet_50 res5a_branch1
8,1024,14,14,512,1,2                        resnet_50 res5a_branch2a
8,512,7,7,512,3,1,1                         resnet_50 res5a_branch2b
8,512,7,7,2048,1                            resnet_50 res5a_branch2c
8,2048,7,7,512,1                            resnet_50 res5b_branch2a
2,1024,28,28,512,1                          resnext_101 conv10
2,2048,14,14,1024,1                         resnext_101 conv16
4,2048,14,14,2048,3,1,1,1,32                resnext_101 conv18
1,1024,14,14,4096,1                         resnext_101 conv19
8,64,56,56,512,1                            resnext_101 conv2
4,4096,14,14,4096,3,2,1,1,32                resnext_101 conv20
2,4096,7,7,2048,1                           resnext_101 conv22
4,512,56,56,512,3,1,1,1,32                  resnext_101 conv3
2,256,56,56,512,1                           resnext_101 conv6
1,64,60,80,64,7,1,3                         segnet conv4
6,3,300,300,64,3,1,1                        ssd_300_voc0712 conv1_1
1,64,150,150,128,3,1,1                      ssd_300_voc0712 conv2_1
1,256,38,38,512,3,1,1                       ssd_300_voc0712 conv4_1
8,256,19,19,512,3,2,1                       ssd_300_voc0712 conv6_2
8,128,10,10,256,3,2,1                       ssd_300_voc0712 conv7_2
8,256,5,5,126,3,1,1                         ssd_300_voc0712 conv7_2_mbox_conf
8,256,5,5,24,3,1,1                          ssd_300_voc0712 conv7_2_mbox_loc
8,256,5,5,128,1                             ssd_300_voc0712 conv8_1
8,128,5,5,256,3                             ssd_300_voc0712 conv8_2
8,128,3,3,256,3                             ssd_300_voc0712 conv9_2
8,256,1,1,84,3,1,1                          ssd_300_voc0712 conv9_2_mbox_conf
8,256,1,1,16,3,1,1                          ssd_300_voc0712 conv9_2_mbox_loc
8,1024,19,19,24,3,1,1                       ssd_300_voc0712 fc7_mbox_loc
8,512,19,19,63,1                            ssd_mobilenet 1
8,256,38,38,256,3,1,1,1,256                 ssd_mobilenet 1
8,128,5,5,256,3,2,1                         ssd_mobilenet 1
8,256,2,2,64,1                              ssd_mobilenet 1
8,128,75,75,128,3,2,1,1,128                 ssd_mobilenet 1
8,512,5,5,126,1                             ssd_mobilenet 1
8,1024,10,10,24,1                           ssd_mobilenet 1
8,1024,10,10,1024,1                         ssd_mobilenet 1
8,512,19,19,512,3,2,1,1,512                 ssd_mobilenet 1
8,512,5,5,24,1                              ssd_mobilenet 1
8,128,1,1,24,1                              ssd_mobilenet 1
8,128,1,1,126,1                             ssd_mobilenet 1
8,128,3,3,256,3,2,1                         ssd_mobilenet 1
8,256,10,10,512,3,2,1                       ssd_mobilenet 1
8,512,5,5,128,1                             ssd_mobilenet 1
8,256,2,2,24,1                              ssd_mobilenet 1
8,1024,10,10,256,1                          ssd_mobilenet 1
8,128,75,75,128,1                           ssd_mobilenet 1
8,512,19,19,256,1                           ssd_resnet34_training conv11
4,64,75,75,64,3,1,1                         ssd_resnet34_training conv2
8,512,19,19,24,3,1,1                        ssd_resnet34_training conv21
8,64,75,75,128,3,2,1                        ssd_resnet34_training conv3
8,64,75,75,128,1,2                          ssd_resnet34_training conv5
2,128,38,38,256,3,1,1                       ssd_resnet34_training conv6
8,128,38,38,256,1                           ssd_resnet34_training conv8
1,512,96,96,512,1                           stable_diffusion conv13
1,1280,24,24,1280,3,2,1                     stable_diffusion conv16
1,1280,48,48,640,1                          stable_diffusion conv19
1,1920,24,24,1280,1                         stable_diffusion conv21
1,2560,12,12,1280,1                         stable_diffusion conv25
1,2560,24,24,1280,1                         stable_diffusion conv27
1,320,96,96,320,3,2,1                       stable_diffusion conv29
1,320,48,48,640,1                           stable_diffusion conv32
1,4,96,96,320,3,1,1                         stable_diffusion conv34
1,640,96,96,320,1                           stable_diffusion conv37
1,960,48,48,640,1                           stable_diffusion conv44
1,32,536,536,16,3                           unet conv11
1,16,534,534,16,3                           unet conv12
1,16,532,532,2,1                            unet conv13
1,32,282,282,32,3                           unet conv4
1,64,138,138,64,3                           unet conv6
1,32,272,272,64,2,2                         unet conv7
1,32,270,270,32,3                           unet conv9
8,3,100,100,32,3,1,1                        vgg_11 conv1_1
8,64,50,50,64,3,1,1                         vgg_11 conv2_1
8,3,224,224,64,3,1,1                        vgg_19 conv1_1
1,64,112,112,128,3,1,1                      vgg_19 conv2_1
1,256,56,56,256,3,1,1                       vgg_19 conv3_2
1,256,28,28,512,3,1,1                       vgg_19 conv4_1
2,512,14,14,512,3,1,1                       vgg_19 conv5_1
3d:1,432,8,14,14,432,3,1x2x2,1,1,432        x3d_dw conv_10
3d:1,54,8,112,112,54,3,1x2x2,1,1,54         x3d_dw conv_12
3d:1,108,8,28,28,108,3,1,1,1,108            x3d_dw conv_2
3d:1,216,8,14,14,216,3,1,1,1,216            x3d_dw conv_3
3d:1,108,8,56,56,108,3,1x2x2,1,1,108        x3d_dw conv_7
1,1024,10,10,1024,3,1,1,1,1024              xception conv3_1
1,1536,10,10,1536,3,1,1,1,1536              xception conv4_1
1,1536,10,10,2048,1                         xception conv4_2
1,728,19,19,1024,1                          xception 12_conv2_2
1,64,147,147,64,3,1,1,1,64                  xception 1_conv1_1
1,64,147,147,128,1                          xception 1_conv1_2
1,128,147,147,128,1                         xception 1_conv2_2
1,128,74,74,256,1                           xception 2_conv1_2
1,256,74,74,256,3,1,1,1,256                 xception 2_conv2_1
1,256,74,74,256,1                           xception 2_conv2_2
1,256,37,37,256,3,1,1,1,256                 xception 3_conv1_1
1,728,37,37,728,1                           xception 3_conv2_2
8,512,38,38,64,1                            yolov2 conv12
6,1024,19,19,425,1                          yolov2 conv14
1,32,306,306,64,3                           yolov2 conv2
5,128,152,152,64,1                          yolov2 conv4
1,128,78,78,256,3                           yolov2 conv5
1,256,40,40,512,3                           yolov2 conv7
5,512,38,38,256,1                           yolov2 conv8
1,512,21,21,1024,3                          yolov2 conv9

1d transposed:1,512,64,256,16,8,4           HiFi-GAN ups.0
1d transposed:1,256,512,128,16,8,4          HiFi-GAN ups.1
1d transposed:1,128,4096,64,4,2,1           HiFi-GAN ups.2
1d:1,128,4096,128,11,1,25,5                 HiFi-GAN resblock dilation 5
1d:1,32,16384,32,7,1,3                      HiFi-GAN resblock
1d transposed:1,1026,256,1,1024,256         inverse STFT
1d:1,1,65536,1026,1024,256                  STFT
1d:1,1,80000,512,10,5                       wav2vec 2.0 conv 0
1d:1,512,4999,512,3,2                       wav2vec 2.0 conv 1
1d:1,768,249,768,128,1,64,1,16              wav2vec 2.0 positions
1d:16,25,400,25,7,1,6                       TCN level 0
1d:16,25,400,25,7,1,96,16                   TCN level 4
2d transposed:8,100,1,1,1024,4              DCGAN project
2d transposed:8,512,8,8,256,4,2,1           DCGAN 8 to 16
2d transposed:8,128,32,32,3,4,2,1           DCGAN 32 to 64
2d transposed:2,256,28,28,128,2,2           U-Net up
2d transposed:8,256,14,14,256,2,2           Mask R-CNN deconvolution
2d transposed:1,56,128,128,1,9,3,4          FSRCNN deconvolution
2d transposed:1,21,34,34,21,16,8,4,1,21     FCN bilinear
3d transposed:1,64,8,14,14,32,2,2           3-d U-Net up
3d transposed:1,32,16,28,28,16,3,2,1        3-d deconvolution
3d:1,32,16,56,56,32,3,1,1                   3-d U-Net
3d:1,1,32,64,64,16,3,1,1                    3-d U-Net, one channel
1,1,1080,1920,16,3,1,1                      one channel, 2 megapixels
1,1,1080,1920,1,31,1,15                     blur of 2 megapixels
8,128,28,28,128,51x5,1,25x2,1,128           SLaK 51x5
8,128,28,28,128,5x51,1,2x25,1,128           SLaK 5x51
8,128,28,28,128,31,1,15,1,128               RepLKNet 31x31
8,96,56,56,96,7,1,3,1,96                    ConvNeXt depthwise
1,64,56,56,64,13,1,6                        13x13
8,3,224,224,768,16,16                       ViT-B patch 16
8,3,224,224,768,32,32                       ViT-B patch 32
8,3,224,224,96,4,4                          Swin patch 4
8,512,1,1,32,1                              SE reduce
8,32,1,1,512,1                              SE expand
8,1152,1,1,48,1                             EfficientNet SE reduce
8,48,1,1,1152,1                             EfficientNet SE expand
8,256,28,28,1,1                             1x1 256-1
1,512,32,32,256,3,1,18,18                   ASPP dilation 18
1,512,32,32,256,3,1,6,6                     ASPP dilation 6
32,3,32,32,16,3,1,1                         CIFAR ResNet conv1
32,16,32,32,16,3,1,1                        CIFAR ResNet 16
32,32,16,16,32,3,1,1                        CIFAR ResNet 32
32,64,8,8,64,3,1,1                          CIFAR ResNet 64
3d:2,24,16,28,28,24,3,1,1,1,24              X3D depthwise
3d:2,64,16,14,14,64,5x3x3,1,2x1x1,1,64      MoviNet depthwise 5x3x3
3d:2,64,16,14,14,64,1x5x5,1,0x2x2,1,64      MoviNet depthwise 1x5x5
3d:2,64,8,28,28,64,3x1x1,1,1x0x0            R(2+1)D temporal
3d:2,64,8,28,28,64,1x3x3,1,0x1x1            R(2+1)D spatial
"""
