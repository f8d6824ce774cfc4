import type { Logger } from 'pino'
import { type Errcode, ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import { type Medium, normaliseAddress } from '../../core/threepid.ts'
import {
  countThreepidBinds,
  deleteThreepidBind,
  insertThreepidBind,
  listThreepidBinds,
  type ThreepidBindRow,
} from '../../store/accounts/threepid-binds.ts'
import {
  deleteUserThreepid,
  deleteUserThreepids,
  findThreepidOwner,
  insertUserThreepid,
  listUserThreepids,
  type ThreepidOwner,
  type UserThreepidRow,
} from '../../store/accounts/user-threepids.ts'
import { userIdsOf } from '../../store/accounts/users.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { Requester } from '../accounts/requester.ts'
import type { UiaProof } from '../accounts/uia-flows.ts'
import type { Clock, Random } from '../clock.ts'
import type { SessionProof } from '../identity/sessions.ts'
import { MAX_THREEPID_BINDS_PER_USER, MAX_THREEPIDS_PER_USER } from '../limits.ts'
import { type ContactProofs, type ShownThreepid, threepidsIn } from './contact-proofs.ts'
import type { UnbindResult } from './identity-server.ts'
import type { IdentityServers } from './identity-servers.ts'

/** Who asks. */
export type Owner = Pick<Requester, 'userNid' | 'userId'>

/** A client names an address in whatever spelling it has. */
export interface NamedThreepid {
  readonly medium: Medium
  readonly address: string
}

/** The addresses of accounts (client-server API, "Adding Account Administrative Contact Information"). */
export interface Contacts {
  list(userNid: number): Promise<UserThreepidRow[]>
  /** Gives a new account the addresses that its registration has shown. @throws ProtocolError `M_THREEPID_IN_USE` */
  addFrom(tx: Tx, userNid: number, proof: UiaProof): Promise<void>
  /**
   * Whose account has the address that was shown for a new password, and had it when it was shown.
   * @throws ProtocolError `M_THREEPID_AUTH_FAILED` when nobody's
   */
  ownerOf(proof: UiaProof): Promise<ThreepidOwner>
  /** Adds the address of a validated session. @throws ProtocolError `M_THREEPID_AUTH_FAILED`, `M_THREEPID_IN_USE` */
  add(owner: Owner, proof: SessionProof): Promise<void>
  /** Publishes an address with an identity server, and remembers where. @throws ProtocolError as `IdentityServers` */
  bind(owner: Owner, idServer: string, accessToken: string, proof: SessionProof): Promise<void>
  /**
   * Takes an address from the account, and unbinds it.
   * @param idServer where it is unbound; undefined: wherever it was bound
   */
  remove(owner: Owner, threepid: NamedThreepid, idServer: string | undefined): Promise<UnbindResult>
  /** Unbinds an address, which stays on the account. @throws ProtocolError as `IdentityServers` for an `idServer` that is named */
  unbind(owner: Owner, threepid: NamedThreepid, idServer: string | undefined): Promise<UnbindResult>
  /** For an account that ends: takes all addresses from it and unbinds them. Nothing to unbind is a success. */
  removeAll(userNid: number, idServer?: string): Promise<UnbindResult>
}

export function createContacts(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly proofs: ContactProofs
  readonly identityServers: Pick<IdentityServers, 'normalise' | 'bind' | 'unbind'>
  readonly log: Logger
}): Contacts {
  const { db, clock, random, proofs, identityServers, log } = deps

  async function insert(tx: Tx, userNid: number, { medium, address, validatedAt }: ShownThreepid): Promise<void> {
    const row = { medium, address, validated_at: validatedAt, added_at: clock.now() }
    if (await insertUserThreepid(tx, userNid, row, MAX_THREEPIDS_PER_USER)) return
    const owner = await findThreepidOwner(tx, medium, address)
    throw owner === undefined || owner.user_nid === userNid
      ? new ProtocolError('M_THREEPID_DENIED', `An account may have ${MAX_THREEPIDS_PER_USER} addresses.`)
      : new ProtocolError('M_THREEPID_IN_USE', 'This address belongs to another account.')
  }

  /** A failure is no reason to keep the address on the account: it stays on the list of what is still to be unbound. */
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

  /** Where an address was bound, nobody may know: then there is nothing that this server can do. */
  async function unbindTracked({ userId, userNid }: Owner, threepid: NamedThreepid): Promise<UnbindResult> {
    const binds = await bindsOf(userNid, threepid)
    return binds.length === 0 ? 'no-support' : unbindEach(userId, userNid, binds)
  }

  function normalised({ medium, address }: NamedThreepid): NamedThreepid {
    const normal = normaliseAddress(medium, address)
    if (normal.includes('\0')) throw new ProtocolError('M_INVALID_PARAM', "Key 'address' holds a NUL character.")
    return { medium, address: normal }
  }

  /** Undefined for a server that is not trusted: it was never bound there through us. @throws ProtocolError `M_INVALID_PARAM` */
  function trustedServer(idServer: string): string | undefined {
    try {
      return identityServers.normalise(idServer)
    } catch (error) {
      if (isOne(error, 'M_SERVER_NOT_TRUSTED')) return undefined
      throw error
    }
  }

  return {
    list: (userNid) => listUserThreepids(db, userNid),
    async addFrom(tx, userNid, proof) {
      for (const threepid of threepidsIn(proof, 'register')) await insert(tx, userNid, threepid)
    },
    async ownerOf(proof) {
      const [shown] = threepidsIn(proof, 'password')
      if (shown === undefined) throw new ProtocolError('M_THREEPID_AUTH_FAILED', 'No address was confirmed.')
      const owner = await findThreepidOwner(db, shown.medium, shown.address)
      // Whoever had an address before its owner did shows nothing about the owner.
      if (owner === undefined || owner.added_at > shown.validatedAt) {
        throw new ProtocolError('M_THREEPID_AUTH_FAILED', 'No account has had this address since it was confirmed.')
      }
      return owner
    },
    async add({ userNid }, proof) {
      const threepid = await proofs.find(proof)
      if (threepid.purpose !== 'add') {
        throw new ProtocolError('M_THREEPID_AUTH_FAILED', 'This session was begun for another purpose.')
      }
      const once = `add ${userNid} ${random.bytes(8).toString('hex')}`
      await db.tx(async (tx) => {
        if (await proofs.use(tx, threepid.session, once)) return insert(tx, userNid, threepid)
        // The answer to the first call may have been lost.
        const owner = await findThreepidOwner(tx, threepid.medium, threepid.address)
        if (owner?.user_nid === userNid) return
        throw new ProtocolError('M_THREEPID_AUTH_FAILED', 'This session has been used before.')
      })
    },
    async bind({ userNid, userId }, idServer, accessToken, proof) {
      const server = identityServers.normalise(idServer)
      // Beyond it we could not end what we began.
      if ((await countThreepidBinds(db, userNid)) >= MAX_THREEPID_BINDS_PER_USER) {
        throw new ProtocolError('M_THREEPID_DENIED', `An account may bind ${MAX_THREEPID_BINDS_PER_USER} addresses.`)
      }
      const { medium, address } = await identityServers.bind(server, accessToken, proof, userId)
      const bound_at = clock.now()
      await db.tx((tx) => insertThreepidBind(tx, userNid, { medium, address, id_server: server, bound_at }))
    },
    async remove(owner, named, idServer) {
      const threepid = normalised(named)
      const server = idServer === undefined ? undefined : trustedServer(idServer)
      await db.tx((tx) => deleteUserThreepid(tx, owner.userNid, threepid.medium, threepid.address))
      if (idServer === undefined) return unbindTracked(owner, threepid)
      return server === undefined
        ? 'no-support'
        : unbindOne(owner.userId, owner.userNid, { ...threepid, id_server: server })
    },
    async unbind(owner, named, idServer) {
      const threepid = normalised(named)
      if (idServer === undefined) return unbindTracked(owner, threepid)
      const id_server = identityServers.normalise(idServer)
      const result = await identityServers.unbind(id_server, threepid, owner.userId)
      if (result === 'success') {
        await db.tx((tx) => deleteThreepidBind(tx, owner.userNid, { ...threepid, id_server }))
      }
      return result
    },
    async removeAll(userNid, idServer) {
      const server = idServer === undefined ? undefined : trustedServer(idServer)
      const [binds, own] = await Promise.all([listThreepidBinds(db, userNid), listUserThreepids(db, userNid)])
      await db.tx((tx) => deleteUserThreepids(tx, userNid))
      const userId = (await userIdsOf(db, [userNid])).get(userNid)
      if (userId === undefined) return 'success'
      const elsewhere = server === undefined ? [] : own.map((each) => ({ ...each, id_server: server }))
      const result = await unbindEach(userId, userNid, [
        ...binds,
        ...elsewhere.filter((each) => !includes(binds, each)),
      ])
      const mayBeBound = binds.length + own.length > 0
      return mayBeBound && idServer !== undefined && server === undefined ? 'no-support' : result
    },
  }
}

function isOne(error: unknown, errcode: Errcode): boolean {
  return error instanceof ProtocolError && error.errcode === errcode
}

function includes(binds: readonly ThreepidBindRow[], { medium, address, id_server }: ThreepidBindRow): boolean {
  return binds.some((each) => each.medium === medium && each.address === address && each.id_server === id_server)
}
