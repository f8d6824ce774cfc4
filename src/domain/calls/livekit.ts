import type { Config } from '../../config/schema.ts'
import type { GuardedClient } from '../../outbound/http.ts'

/** What a token allows in LiveKit. */
export interface LivekitGrants {
  readonly room?: string
  readonly roomJoin?: boolean
  readonly roomCreate?: boolean
  readonly canPublish?: boolean
  readonly canSubscribe?: boolean
  readonly canUpdateOwnMetadata?: boolean
}

export interface Livekit {
  /** A token in LiveKit's form. @param identity the participant; none for calls of the server's interface */
  token(grants: LivekitGrants, lifetimeSeconds: number, identity?: string): Promise<string>
  /** Makes a room, unless it is there. @returns what went wrong, in words */
  createRoom(name: string): Promise<string | undefined>
}

const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 65_536
const CALL_SECONDS = 60
/** How long LiveKit keeps a room that nobody joins, and one that everybody has left. */
const EMPTY_SECONDS = 300
const DEPARTURE_SECONDS = 20

/** @returns undefined where there is no LiveKit server. @param client may call addresses of this machine */
export function createLivekit(deps: {
  readonly config: Pick<Config, 'calls'>
  readonly client: Pick<GuardedClient, 'request'>
  readonly now: () => number
}): Livekit | undefined {
  const { url, api_url, api_key = '', api_secret = '' } = deps.config.calls.livekit
  if (url === undefined) return undefined
  const api = (api_url ?? url.replace(/^ws/, 'http')).replace(/\/+$/, '')
  const secret = Buffer.from(api_secret)

  async function token(video: LivekitGrants, lifetimeSeconds: number, identity?: string): Promise<string> {
    const { SignJWT } = await import('jose')
    const now = Math.floor(deps.now() / 1000)
    const jwt = new SignJWT({ video }).setProtectedHeader({ alg: 'HS256', typ: 'JWT' }).setIssuer(api_key)
    if (identity !== undefined) jwt.setSubject(identity)
    return jwt
      .setNotBefore(now)
      .setExpirationTime(now + lifetimeSeconds)
      .sign(secret)
  }

  return {
    token,
    async createRoom(name) {
      const answer = await deps.client.request({
        method: 'POST',
        url: `${api}/twirp/livekit.RoomService/CreateRoom`,
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${await token({ roomCreate: true }, CALL_SECONDS)}`,
        },
        body: JSON.stringify({ name, empty_timeout: EMPTY_SECONDS, departure_timeout: DEPARTURE_SECONDS }),
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_ANSWER_BYTES,
      })
      if (!answer.ok) return answer.detail
      return answer.status === 200 ? undefined : `it answers ${answer.status}`
    },
  }
}
