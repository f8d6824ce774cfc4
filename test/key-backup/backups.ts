import { type Account, type Api, type Json, register } from '../support/api.ts'

export const ALGORITHM = 'm.megolm_backup.v1.curve25519-aes-sha2'
export const ROOM = '!room:localhost'
export const OTHER_ROOM = '!other:localhost'

export interface KeyData {
  readonly first_message_index: number
  readonly forwarded_count: number
  readonly is_verified: boolean
  readonly session_data: Json
}

let made = 0

/** A key that is unlike all others. */
export function newKey(values: Partial<KeyData> = {}): KeyData {
  made += 1
  const session_data = { ephemeral: 'e', ciphertext: `c${made}`, mac: 'm' }
  return { first_message_index: 1, forwarded_count: 0, is_verified: false, session_data, ...values }
}

export interface Owner extends Account {
  ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: Json }>
  call(method: string, path: string, body?: unknown): Promise<Json>
  /** Makes a backup and gives its version. */
  backup(authData?: object): Promise<string>
}

/** The path of all keys, of a room's, or of one. */
export function keysPath(version: string, room?: string, session?: string): string {
  const place = [room, session].flatMap((part) => (part === undefined ? [] : [`/${encodeURIComponent(part)}`])).join('')
  return `/room_keys/keys${place}?version=${version}`
}

export async function newOwner(api: Api, name: string): Promise<Owner> {
  const account = await register(api, name)
  const { token } = account
  const call: Owner['call'] = (method, path, body) => api.call(method, path, { token, body })
  return {
    ...account,
    call,
    ask: (method, path, body) => api.request(method, path, { token, body }),
    async backup(authData = { public_key: 'abc' }) {
      return (await call('POST', '/room_keys/version', { algorithm: ALGORITHM, auth_data: authData })).version
    },
  }
}
