import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import {
  countUiaAttempt,
  countUiaSessions,
  deleteOldestUiaSessions,
  deleteUiaSession,
  findUiaSession,
  insertUiaSession,
  lockUiaSession,
  type UiaSessionRow,
  updateUiaSession,
} from '../../store/accounts/uia-sessions.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { Clock, Random } from '../clock.ts'
import {
  MAX_UIA_ATTEMPTS,
  MAX_UIA_SESSIONS,
  MAX_UIA_SESSIONS_PER_ADDRESS,
  MAX_UIA_SESSIONS_PER_USER,
  UIA_SESSION_MS,
} from '../limits.ts'
import { oldestGiveWay } from '../oldest-give-way.ts'
import type { Requester } from './requester.ts'
import { isFlowDone, nextStages, type UiaFlow, type UiaProof } from './uia-flows.ts'
import { bodyHash, openedBody, sealedBody, storedId } from './uia-seal.ts'

/** The request that is being authorised. */
export interface UiaOperation {
  /** Method, path and parameters of the call: `DELETE C/devices/ABC`. A proof for one operation does not count for another. */
  readonly operation: string
  readonly requester: Requester | undefined
  /** The address that the call comes from, as limits count it. */
  readonly address: string
  /** The body without `auth`. */
  readonly body: JsonObject
  readonly flows: readonly UiaFlow[]
}

export interface UiaSession {
  /** The session id that the client has. */
  readonly id: string
  readonly isStored: boolean
  readonly completed: UiaProof
  /** The body of the first request, if this one sent only the session. */
  readonly firstBody?: JsonObject
}

/** A session as a fallback page sees it. The page does not know the request. */
interface FoundSession {
  readonly userNid: number | undefined
  readonly operation: string
  readonly flows: readonly UiaFlow[]
  readonly completed: UiaProof
}

const SESSION_BYTES = 18
/** `fresh` makes ids of this form. */
const SESSION_ID = /^[\w-]{24}$/

function isUiaSessionId(text: string): boolean {
  return SESSION_ID.test(text)
}

export function sessionEnded(): ProtocolError {
  return new ProtocolError('M_NOT_FOUND', 'This session is not known or has ended.')
}

export function stageUnwanted(stage: string): ProtocolError {
  return new ProtocolError('M_BAD_STATE', `This session does not ask for ${stage} now.`)
}

function parsed(row: UiaSessionRow): FoundSession {
  return {
    userNid: row.user_nid ?? undefined,
    operation: row.operation,
    flows: JSON.parse(row.flows) as UiaFlow[],
    completed: JSON.parse(row.completed) as UiaProof,
  }
}

/** Stores the sessions of interactive authentication. */
export function createUiaSessions(deps: { readonly db: Database; readonly clock: Clock; readonly random: Random }) {
  const { db, clock, random } = deps
  const notBefore = (): number => clock.now() - UIA_SESSION_MS
  const makeRoom = oldestGiveWay(deps, {
    most: MAX_UIA_SESSIONS,
    count: countUiaSessions,
    deleteOldest: deleteOldestUiaSessions,
  })

  /** The body counts from the first completed stage on. A stage that was completed out of band counts for the first body. */
  function check(row: UiaSessionRow, id: string, request: UiaOperation): UiaSession {
    const completed = JSON.parse(row.completed) as UiaProof
    const isBound = row.body_hash !== null && Object.keys(completed).length > 0
    const fits = !isBound || row.body_hash.equals(bodyHash(id, request.body))
    const isCaller = row.user_nid === (request.requester?.userNid ?? null)
    if (isCaller && row.operation === request.operation && fits) return { id, isStored: true, completed }
    throw new ProtocolError('M_FORBIDDEN', 'The request is not the one that this session was begun for.')
  }

  function begin(tx: Tx, id: string, { operation, requester, address, body, flows }: UiaOperation): Promise<void> {
    const session = {
      sessionId: storedId(id),
      operation,
      userNid: requester?.userNid,
      address: requester === undefined ? address : undefined,
      // A user without an account may look at the flows first, and choose a name later.
      bodyHash: requester && bodyHash(id, body),
      body: requester === undefined ? sealedBody(id, body, random) : undefined,
      flows: JSON.stringify(flows),
      createdAt: clock.now(),
    }
    return insertUiaSession(tx, session, requester ? MAX_UIA_SESSIONS_PER_USER : MAX_UIA_SESSIONS_PER_ADDRESS)
  }

  return {
    /** A session that is not stored yet. */
    fresh: (): UiaSession => ({
      id: random.bytes(SESSION_BYTES).toString('base64url'),
      isStored: false,
      completed: {},
    }),

    /** Stores the session if it is not stored yet. */
    async ensure(session: UiaSession, request: UiaOperation): Promise<UiaSession> {
      if (session.isStored) return session
      await makeRoom()
      await db.tx((tx) => begin(tx, session.id, request))
      return { ...session, isStored: true }
    },

    /**
     * The session that a client names; undefined if it has ended. An attempt at a stage is counted, and one too many ends the session.
     * @throws ProtocolError `M_FORBIDDEN` if it was begun for another request
     */
    async open(id: string, request: UiaOperation, isAttempt: boolean): Promise<UiaSession | undefined> {
      if (!isUiaSessionId(id)) return undefined
      const row = await findUiaSession(db, storedId(id), notBefore())
      if (row === undefined) return undefined
      const isAlone = row.body !== null && Object.keys(request.body).length === 0
      const firstBody = isAlone ? openedBody(id, row.body) : undefined
      const found = check(row, id, firstBody === undefined ? request : { ...request, body: firstBody })
      const session = firstBody === undefined ? found : { ...found, firstBody }
      if (isAttempt && !(await db.tx((tx) => countUiaAttempt(tx, row.session_id, MAX_UIA_ATTEMPTS)))) return undefined
      return session
    },

    /** Adds what was proven, and removes the session once a flow is complete. Undefined if the session has ended meanwhile. */
    async record(session: UiaSession, proven: UiaProof, request: UiaOperation): Promise<UiaSession | undefined> {
      const { id } = session
      if (!session.isStored) await makeRoom()
      return db.tx(async (tx) => {
        if (!session.isStored) await begin(tx, id, request)
        const row = await lockUiaSession(tx, storedId(id), notBefore())
        if (row === undefined) return undefined
        const before = check(row, id, request).completed
        const completed = { ...before, ...proven }
        if (isFlowDone(request.flows, completed)) {
          await deleteUiaSession(tx, row.session_id)
        } else {
          const isBound = Object.keys(completed).length > 0
          const bound = isBound ? bodyHash(id, request.body) : (row.body_hash ?? undefined)
          const state = { bodyHash: bound, completed: JSON.stringify(completed), flows: JSON.stringify(request.flows) }
          // If the user chooses another name meanwhile, that name counts.
          const body = request.requester === undefined ? sealedBody(id, request.body, random) : undefined
          await updateUiaSession(tx, row.session_id, { ...state, body })
        }
        return { id, isStored: true, completed }
      })
    },

    /** Completes a stage that was finished out of band. @throws as `InteractiveAuth.complete` */
    async complete(id: string, stage: string, proof: JsonObject): Promise<void> {
      await db.tx(async (tx) => {
        const row = isUiaSessionId(id) ? await lockUiaSession(tx, storedId(id), notBefore()) : undefined
        if (row === undefined) throw sessionEnded()
        const { completed, flows } = parsed(row)
        if (Object.hasOwn(completed, stage)) return
        if (!nextStages(flows, completed).includes(stage)) throw stageUnwanted(stage)
        const state = {
          bodyHash: row.body_hash ?? undefined,
          completed: JSON.stringify({ ...completed, [stage]: proof }),
          flows: row.flows,
          body: undefined,
        }
        await updateUiaSession(tx, row.session_id, state)
      })
    },

    /** Counts an attempt at a stage; false when there were too many. */
    count: (id: string): Promise<boolean> => db.tx((tx) => countUiaAttempt(tx, storedId(id), MAX_UIA_ATTEMPTS)),

    async find(id: string): Promise<FoundSession | undefined> {
      if (!isUiaSessionId(id)) return undefined
      const row = await findUiaSession(db, storedId(id), notBefore())
      return row && parsed(row)
    },
  }
}
