import { createCipheriv, createDecipheriv, hash, hkdfSync } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import type { Medium } from '../../core/threepid.ts'
import {
  type DelegatedSessionRow,
  findDelegatedSession,
  putDelegatedSession,
} from '../../store/accounts/delegated-sessions.ts'
import type { Database } from '../../store/db/db.ts'
import type { Clock, Random } from '../clock.ts'
import type { TokenRequest } from '../identity/sessions.ts'
import type { AddressWish, BegunSession } from './identity-server.ts'
import type { IdentityServers } from './identity-servers.ts'
import type { NamedProof, ProvenThreepid, Purpose } from './proof.ts'

/** The identity server that a client names for validation, and the user's token there. */
export interface NamedServer {
  readonly server: ServerName
  readonly accessToken: string
}

export interface Delegation extends NamedServer {
  readonly purpose: Purpose
  readonly medium: Medium
  /** Normalised: the identity server must validate exactly this one. */
  readonly address: string
}

/** Address validation by identity servers (client-server API, `id_server` of the operations named `requestToken`). */
export interface DelegatedSessions {
  /**
   * Has an identity server begin a session. It counts for one purpose and address.
   * @throws ProtocolError the identity server's error
   */
  begin(delegation: Delegation, wish: AddressWish, request: TokenRequest): Promise<BegunSession>
  /**
   * The address that a session proves, as its identity server says now; undefined if it was not begun here.
   * @throws ProtocolError `M_THREEPID_AUTH_FAILED` if it proves another address, and the identity server's errors
   */
  find(proof: NamedProof): Promise<ProvenThreepid | undefined>
}

const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16

const keyOf = (sid: string, clientSecret: string): Buffer => hash('sha256', `${sid}\0${clientSecret}`, 'buffer')

/** The token is encrypted with the client secret, which is never stored: somebody who reads the database cannot read the token. */
const cipherKey = (clientSecret: string, sid: string): Buffer =>
  Buffer.from(hkdfSync('sha256', clientSecret, sid, 'id_access_token', 32))

function seal(text: string, key: Buffer, iv: Buffer): Buffer {
  const cipher = createCipheriv(CIPHER, key, iv)
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed])
}

function open(sealed: Buffer, key: Buffer): string {
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, IV_BYTES))
  decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
  return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8')
}

export function createDelegatedSessions(deps: {
  readonly config: Pick<Config, 'identity'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly identityServers: Pick<IdentityServers, 'normalise' | 'requestToken' | 'getValidated3pid'>
}): DelegatedSessions {
  const { config, db, clock, random, identityServers } = deps
  const lifetimeMs = 2 * config.identity.sessions.lifetime_hours * 3_600_000

  /** The client may have got a newer token meanwhile. */
  function tokenFor(row: DelegatedSessionRow, proof: NamedProof): string {
    if (proof.idServer !== undefined && identityServers.normalise(proof.idServer) !== row.id_server) {
      throw new ProtocolError('M_THREEPID_AUTH_FAILED', `This session was begun with ${row.id_server}.`)
    }
    return proof.accessToken ?? open(row.token, cipherKey(proof.clientSecret, row.sid))
  }

  return {
    async begin({ server, accessToken, purpose, medium, address }, wish, request) {
      const { clientSecret } = request
      const begun = await identityServers.requestToken(server, accessToken, wish, request)
      const { sid } = begun
      await db.tx((tx) =>
        putDelegatedSession(tx, {
          ...{ key: keyOf(sid, clientSecret), sid, id_server: server, purpose, medium, address },
          token: seal(accessToken, cipherKey(clientSecret, sid), Buffer.from(random.bytes(IV_BYTES))),
          expires_at: clock.now() + lifetimeMs,
        }),
      )
      return begun
    },
    async find(proof) {
      const row = await findDelegatedSession(db, keyOf(proof.sid, proof.clientSecret))
      if (row === undefined || row.expires_at <= clock.now()) return undefined
      const found = await identityServers.getValidated3pid(row.id_server, tokenFor(row, proof), proof)
      if (found.medium !== row.medium || found.address !== row.address) {
        throw new ProtocolError('M_THREEPID_AUTH_FAILED', 'This session shows another address than it was begun for.')
      }
      // A validation cannot lie in the future.
      const validatedAt = Math.min(found.validatedAt, clock.now())
      return { ...found, validatedAt, purpose: row.purpose as Purpose, session: `${row.id_server} ${row.sid}` }
    },
  }
}
