import { setImmediate } from 'node:timers/promises'
import type { ServerName } from '../../core/ids.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { verifyJson } from '../../core/signing/json-signature.ts'
import type { KeyFetcher } from '../../outbound/server-keys.ts'
import type { Clock } from '../clock.ts'
import { MAX_KEY_REQUESTS_AT_ONCE, MAX_KEYS_PER_SERVER, MAX_NOTARY_SERVERS } from '../limits.ts'
import type { KeyRing } from '../rooms/receive/federation-queries.ts'
import { readKeyAnswer, type ServerKey } from './key-answer.ts'

/** What is said of a server's keys. */
export interface ToldKeys {
  readonly keys: readonly ServerKey[]
  /** By the server itself. */
  readonly isFirstHand: boolean
}

/** Who is asked for the keys of a server: the server, and the key servers for one that does not answer. */
export interface KeySources {
  /** Undefined when nobody gives an answer that can be believed. */
  ask(server: ServerName, keyIds: readonly string[]): Promise<ToldKeys | undefined>
}

/**
 * With so many servers being asked at once, as when a large room is joined, key servers are asked first: they tell the keys of many in
 * one answer, and no dead server has to be waited for.
 */
const MANY = 8
/** A server that answers at all does so sooner. */
const PATIENCE_MS = 1_000
/** Requests to one key server. While they are under way, what comes is gathered for the next. */
const BATCHES_AT_ONCE = 2

export function createKeySources(deps: {
  readonly keyServers: readonly ServerName[]
  readonly clock: Clock
  readonly fetcher: KeyFetcher
  /** The keys of key servers. */
  readonly keysOf: KeyRing['keysOf']
}): KeySources {
  const { keyServers, clock, fetcher, keysOf } = deps
  const inTurn = limitedTo(MAX_KEY_REQUESTS_AT_ONCE, PATIENCE_MS)
  const notaries = keyServers.map((name) => ({ name, ask: batched((wanted) => fetcher.byNotary(name, wanted)) }))
  let asking = 0

  async function byItself(server: ServerName): Promise<ToldKeys | undefined> {
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

  /** What a key server has signed counts as said by the server itself. The first that knows a key is believed. */
  async function byNotaries(server: ServerName, keyIds: readonly string[]): Promise<ToldKeys | undefined> {
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
      // A key server speaks for itself, or two of them would wait for each other.
      if (keyServers.includes(server)) return byItself(server)
      asking++
      try {
        if (asking <= MANY || notaries.length === 0) return (await byItself(server)) ?? byNotaries(server, keyIds)
        const told = await byNotaries(server, keyIds)
        const knows = (keyId: string) => told?.keys.some((key) => key.keyId === keyId && isGood(key, clock.now()))
        return keyIds.every(knows) ? told : ((await byItself(server)) ?? told)
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

/** Asks for many servers in one request, and gives each the answers about it. */
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
 * Runs at most so many at once; the others in the order in which they came. What takes longer than is waited for makes room for the
 * next: servers that do not answer hold up no other.
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
