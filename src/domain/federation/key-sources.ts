import { setImmediate } from 'node:timers/promises'
import type { ServerName } from '../../core/ids.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { verifyJson } from '../../core/signing/json-signature.ts'
import type { KeyFetcher } from '../../outbound/server-keys.ts'
import type { Clock } from '../clock.ts'
import { MAX_KEY_REQUESTS_AT_ONCE, MAX_KEYS_PER_SERVER, MAX_NOTARY_SERVERS } from '../limits.ts'
import type { KeyRing } from '../rooms/receive/federation-queries.ts'
import { readKeyAnswer, type ServerKey } from './key-answer.ts'

/** A server's keys, and who sent them. */
export interface FetchedKeys {
  readonly keys: readonly ServerKey[]
  /** Whether the server itself sent them. */
  readonly isFirstHand: boolean
}

/** Requests a server's keys: from the server, or from key servers if it does not answer. */
export interface KeySources {
  /** Undefined if there is no valid answer. */
  ask(server: ServerName, keyIds: readonly string[]): Promise<FetchedKeys | undefined>
}

/**
 * When this many servers are being asked, as at the join of a large room, key servers are asked first: one answer has the keys of many
 * servers, and no unreachable server delays it.
 */
const MANY = 8
/** A server that answers at all does so within this time. */
const PATIENCE_MS = 1_000
/** Requests to one key server at a time. Meanwhile further queries are collected for the next request. */
const BATCHES_AT_ONCE = 2

export function createKeySources(deps: {
  readonly keyServers: readonly ServerName[]
  readonly clock: Clock
  readonly fetcher: KeyFetcher
  /** The keys of the key servers. */
  readonly keysOf: KeyRing['keysOf']
}): KeySources {
  const { keyServers, clock, fetcher, keysOf } = deps
  const inTurn = limitedTo(MAX_KEY_REQUESTS_AT_ONCE, PATIENCE_MS)
  const notaries = keyServers.map((name) => ({ name, ask: batched((wanted) => fetcher.byNotary(name, wanted)) }))
  let asking = 0

  async function byItself(server: ServerName): Promise<FetchedKeys | undefined> {
    const answer = await inTurn(() => fetcher.own(server))
    const keys = answer && readKeyAnswer(server, answer, clock.now())
    return keys && { keys, isFirstHand: true }
  }

  async function isSignedBy(notary: ServerName, answer: JsonObject): Promise<boolean> {
    const signatures = isObject(answer.signatures) ? answer.signatures[notary] : undefined
    const keyIds = isObject(signatures) ? Object.keys(signatures).slice(0, MAX_KEYS_PER_SERVER) : []
    const now = clock.now()
    const keys = (await keysOf(notary, keyIds)).filter(({ validUntilTs }) => validUntilTs >= now)
    return keys.some(({ keyId, publicKey }) => verifyJson(answer, notary, keyId, publicKey))
  }

  /**
   * A document that a key server has signed counts like one from the server itself. The first key server that knows a key is believed.
   */
  async function byNotaries(server: ServerName, keyIds: readonly string[]): Promise<FetchedKeys | undefined> {
    const found = new Map<string, ServerKey>()
    for (const { name, ask } of notaries) {
      for (const answer of await ask(server, keyIds)) {
        const keys = readKeyAnswer(server, answer, clock.now())
        if (keys === undefined || !(await isSignedBy(name, answer))) continue
        for (const key of keys) if (!found.has(key.keyId)) found.set(key.keyId, key)
      }
      if (keyIds.every((keyId) => found.has(keyId))) break
    }
    return found.size === 0 ? undefined : { keys: [...found.values()], isFirstHand: false }
  }

  return {
    async ask(server, keyIds) {
      // A key server is asked for its own keys directly, or two of them would wait for each other.
      if (keyServers.includes(server)) return byItself(server)
      asking++
      try {
        if (asking <= MANY || notaries.length === 0) return (await byItself(server)) ?? byNotaries(server, keyIds)
        const fetched = await byNotaries(server, keyIds)
        const knows = (keyId: string) => fetched?.keys.some((key) => key.keyId === keyId && isGood(key, clock.now()))
        return keyIds.every(knows) ? fetched : ((await byItself(server)) ?? fetched)
      } finally {
        asking--
      }
    },
  }
}

function isGood({ isOld, validUntilTs }: ServerKey, now: number): boolean {
  return isOld || validUntilTs >= now
}

type Batch = Map<ServerName, Set<string>>

/** Asks about many servers in one request, and gives each caller the answers about its server. */
function batched(load: (wanted: Batch) => Promise<readonly JsonObject[]>) {
  let gathered: { readonly wanted: Batch; readonly answers: Promise<readonly JsonObject[]> } | undefined
  const inTurn = limitedTo(BATCHES_AT_ONCE)

  function gather() {
    const wanted: Batch = new Map()
    const answers = inTurn(async () => {
      await setImmediate()
      if (gathered?.wanted === wanted) gathered = undefined
      return load(wanted)
    })
    return { wanted, answers }
  }

  return async (server: ServerName, keyIds: readonly string[]): Promise<readonly JsonObject[]> => {
    if (gathered === undefined || gathered.wanted.size >= MAX_NOTARY_SERVERS) gathered = gather()
    const { wanted, answers } = gathered
    wanted.set(server, new Set([...(wanted.get(server) ?? []), ...keyIds]))
    return (await answers).filter(({ server_name }) => server_name === server)
  }
}

/**
 * Runs at most `atOnce` tasks at a time, the others in order. A task that takes longer than `patienceMs` gives up its place, so servers
 * that do not answer delay no others.
 */
function limitedTo(atOnce: number, patienceMs?: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  function leave(): void {
    const next = waiting.shift()
    if (next === undefined) running--
    else next()
  }
  return async (work) => {
    if (running < atOnce) running++
    else await new Promise<void>((resolve) => waiting.push(resolve))
    let isCounted = true
    const makeRoom = () => {
      if (isCounted) leave()
      isCounted = false
    }
    const patience = patienceMs === undefined ? undefined : setTimeout(makeRoom, patienceMs)
    try {
      return await work()
    } finally {
      clearTimeout(patience)
      makeRoom()
    }
  }
}
