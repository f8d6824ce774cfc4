import type { Endpoint } from '../../http/endpoint.ts'
import { getLivekitHealth } from './get-livekit-health.ts'
import { getLivekitToken } from './get-livekit-token.ts'
import { getSfu } from './get-sfu.ts'

export const livekitEndpoints: readonly Endpoint[] = [getSfu, getLivekitToken, getLivekitHealth]
