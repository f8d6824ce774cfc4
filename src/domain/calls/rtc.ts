import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { membershipOf } from '../../core/event/content.ts'
import { isRoomId, isServerName, isUserId, serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { ServerPolicy } from '../../core/server-policy.ts'
import type { OpenIdTokens } from '../accounts/openid-tokens.ts'
import type { OpenIdVerifier } from '../identity/openid-verifier.ts'
import { publicBaseUrl } from '../public-address.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Livekit } from './livekit.ts'
import { livekitIdentity, livekitRoom } from './livekit-names.ts'

/** What a client shows to be let into a call: a token that its homeserver vouches for. */
export interface OpenIdProof {
  readonly access_token: string
  readonly matrix_server_name: string
}

/** Who wants into which call. */
export interface CallEntry {
  readonly proof: OpenIdProof
  readonly roomId: string
  readonly slotId: string
  /** The participant as calls of Matrix 2.0 name it; older ones have the device alone. */
  readonly member: { readonly id: string; readonly userId: string } | undefined
  readonly deviceId: string
}

export interface LivekitPass {
  readonly url: string
  readonly jwt: string
}

/** MatrixRTC: what carries calls of groups (MSC4143), and who is let in (MSC4195). */
export interface Rtc {
  /** The transports as clients read them; none where there is no LiveKit server. */
  readonly transports: readonly JsonObject[]
  /**
   * A token for LiveKit. For users who may begin a call, the call's room is made first.
   *
   * @throws ProtocolError `M_UNRECOGNIZED` when there is no LiveKit server; `M_UNAUTHORIZED` for a token that is not good; `M_FORBIDDEN` for
   *   a server that is refused and for a user who is not in the room; `M_INVALID_PARAM` for a device id that would make another
   *   participant; `M_UNKNOWN` (502) when a server cannot be asked
   */
  enter(entry: CallEntry): Promise<LivekitPass>
}

export interface RtcParts {
  readonly config: Pick<Config, 'calls' | 'server_name' | 'public_base_url' | 'listen' | 'well_known'>
  readonly livekit: Livekit | undefined
  readonly openIdTokens: Pick<OpenIdTokens, 'userOf'>
  /** Asks other homeservers. */
  readonly openIdVerifier: OpenIdVerifier
  readonly policy: ServerPolicy
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly log: Logger
}

/** The path of the authorisation service. */
export const LIVEKIT_PATH = '/_hearth/livekit'

const PASS_SECONDS = 3600

export function createRtc(parts: RtcParts): Rtc {
  const { config, livekit, policy, log } = parts
  const { server_name } = config
  const { url = '', full_access_servers } = config.calls.livekit
  const full = new Set<string>([server_name, ...full_access_servers])
  const service = `${(config.well_known.client_base_url ?? publicBaseUrl(config)).replace(/\/+$/, '')}${LIVEKIT_PATH}`

  async function subjectOf({ access_token: token, matrix_server_name: server }: OpenIdProof): Promise<UserId> {
    if (!isServerName(server)) throw new ProtocolError('M_INVALID_PARAM', `${server} is no name of a server.`)
    const refusal = policy.refusalOf(server)
    if (refusal !== undefined) throw new ProtocolError('M_FORBIDDEN', `Users of ${server} may not call here.`)
    const isOwn = server === server_name
    const sub = await (isOwn ? parts.openIdTokens.userOf(token) : parts.openIdVerifier.subjectOf(server, token))
    if (isUserId(sub) && serverOf(sub) === server) return sub
    throw new ProtocolError('M_UNAUTHORIZED', `The homeserver ${server} does not know this OpenID token.`)
  }

  async function mustBeInRoom(user: UserId, roomId: string): Promise<void> {
    const room = isRoomId(roomId) ? await parts.registry.get(roomId) : undefined
    const member = await room?.stateEvent('m.room.member', user)
    if (member && membershipOf(member) === 'join') return
    throw new ProtocolError('M_FORBIDDEN', `${user} is not in this room.`)
  }

  return {
    transports: livekit === undefined ? [] : [{ type: 'livekit', livekit_service_url: service }],
    async enter({ proof, roomId, slotId, member, deviceId }) {
      if (livekit === undefined) throw new ProtocolError('M_UNRECOGNIZED', 'This server carries no calls of groups.')
      // Without a member, user and device make the participant: `@a:b` on `1:c` would be `@a:b:1` on `c`.
      if (member === undefined && deviceId.includes(':')) {
        throw new ProtocolError('M_INVALID_PARAM', 'Calls of this kind need a device id without a colon.')
      }
      const user = await subjectOf(proof)
      if (member && member.userId !== user) {
        throw new ProtocolError('M_UNAUTHORIZED', `The token is that of ${user}, not of ${member.userId}.`)
      }
      await mustBeInRoom(user, roomId)
      const room = livekitRoom(roomId, slotId)
      if (full.has(proof.matrix_server_name)) {
        const flaw = await livekit.createRoom(room)
        if (flaw !== undefined) {
          log.warn({ reason: flaw }, 'LiveKit makes no room')
          throw new ProtocolError('M_UNKNOWN', 'The server for calls cannot be reached. Try again later.', {
            status: 502,
          })
        }
      }
      const identity = member ? livekitIdentity(user, deviceId, member.id) : `${user}:${deviceId}`
      const may = { canPublish: true, canSubscribe: true, canUpdateOwnMetadata: true }
      return {
        url,
        jwt: await livekit.token({ room, roomJoin: true, roomCreate: false, ...may }, PASS_SECONDS, identity),
      }
    },
  }
}
