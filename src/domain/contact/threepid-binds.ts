import type { Logger } from 'pino'
import { type Errcode, ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { Medium } from '../../core/threepid.ts'
import {
  countThreepidBinds,
  deleteThreepidBind,
  insertThreepidBind,
  listThreepidBinds,
  type ThreepidBindRow,
} from '../../store/accounts/threepid-binds.ts'
import type { Database } from '../../store/db/db.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock } from '../clock.ts'
import type { SessionProof } from '../identity/session-proofs.ts'
import { MAX_THREEPID_BINDS_PER_USER } from '../limits.ts'
import type { UnbindResult } from './identity-server.ts'
import type { IdentityServers } from './identity-servers.ts'

/** The user who asks. */
export type Owner = Pick<Requester, 'userNid' | 'userId'>

/** An address in any spelling, as a client names it. */
export interface NamedThreepid {
  readonly medium: Medium
  readonly address: string
}

/** Binds and unbinds addresses of accounts, and remembers the identity servers where this server bound them. */
export interface ThreepidBinds {
  /** Binds an address at an identity server, and remembers where. @throws ProtocolError as `IdentityServers` */
  bind(owner: Owner, idServer: string, accessToken: string, proof: SessionProof): Promise<void>
  /** Unbinds an address at one server. @throws ProtocolError as `IdentityServers` */
  unbindAt(owner: Owner, threepid: NamedThreepid, idServer: string): Promise<UnbindResult>
  /** Unbinds an address wherever it was bound. */
  unbindTracked(owner: Owner, threepid: NamedThreepid): Promise<UnbindResult>
  /** Unbinds addresses that are removed from an account. A failed one stays on the list of bindings to undo. */
  unbindEach(userId: UserId, userNid: number, binds: readonly ThreepidBindRow[]): Promise<UnbindResult>
  /** The same for one. */
  unbindOne(userId: UserId, userNid: number, bind: ThreepidBindRow): Promise<UnbindResult>
  /** The normal form of an identity server's name; undefined if it is not trusted. @throws ProtocolError `M_INVALID_PARAM` */
  trustedServer(idServer: string): string | undefined
}

export interface ThreepidBindParts {
  readonly db: Database
  readonly clock: Clock
  readonly identityServers: Pick<IdentityServers, 'normalise' | 'bind' | 'unbind'>
  readonly log: Logger
}

export function createThreepidBinds({ db, clock, identityServers, log }: ThreepidBindParts): ThreepidBinds {
  /** If it fails, the address is still removed from the account. The binding stays on the list of bindings to undo. */
  async function unbindOne(userId: UserId, userNid: number, bind: ThreepidBindRow): Promise<UnbindResult> {
    try {
      const result = await identityServers.unbind(bind.id_server, bind, userId)
      if (result === 'success') await db.tx((tx) => deleteThreepidBind(tx, userNid, bind))
      return result
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      log.info({ id_server: bind.id_server, reason: error.message }, 'an address was not unbound')
      return 'no-support'
    }
  }

  async function unbindEach(userId: UserId, userNid: number, binds: readonly ThreepidBindRow[]): Promise<UnbindResult> {
    const results = await Promise.all(binds.map((bind) => unbindOne(userId, userNid, bind)))
    return results.every((result) => result === 'success') ? 'success' : 'no-support'
  }

  async function bindsOf(userNid: number, { medium, address }: NamedThreepid): Promise<ThreepidBindRow[]> {
    const all = await listThreepidBinds(db, userNid)
    return all.filter((bind) => bind.medium === medium && bind.address === address)
  }

  return {
    unbindOne,
    unbindEach,
    async bind({ userNid, userId }, idServer, accessToken, proof) {
      const server = identityServers.normalise(idServer)
      // Beyond the limit we could not undo the binding later.
      if ((await countThreepidBinds(db, userNid)) >= MAX_THREEPID_BINDS_PER_USER) {
        throw new ProtocolError('M_THREEPID_DENIED', `An account may bind ${MAX_THREEPID_BINDS_PER_USER} addresses.`)
      }
      const { medium, address } = await identityServers.bind(server, accessToken, proof, userId)
      const bound_at = clock.now()
      await db.tx((tx) => insertThreepidBind(tx, userNid, { medium, address, id_server: server, bound_at }))
    },
    async unbindAt(owner, threepid, idServer) {
      const id_server = identityServers.normalise(idServer)
      const result = await identityServers.unbind(id_server, threepid, owner.userId)
      if (result === 'success') {
        await db.tx((tx) => deleteThreepidBind(tx, owner.userNid, { ...threepid, id_server }))
      }
      return result
    },
    // If we do not know where an address was bound, this server can do nothing.
    async unbindTracked({ userId, userNid }, threepid) {
      const binds = await bindsOf(userNid, threepid)
      return binds.length === 0 ? 'no-support' : unbindEach(userId, userNid, binds)
    },
    // We never bind at a server that is not trusted.
    trustedServer(idServer) {
      try {
        return identityServers.normalise(idServer)
      } catch (error) {
        if (isOne(error, 'M_SERVER_NOT_TRUSTED')) return undefined
        throw error
      }
    },
  }
}

function isOne(error: unknown, errcode: Errcode): boolean {
  return error instanceof ProtocolError && error.errcode === errcode
}
