import { hash } from 'node:crypto'
import { Pool } from 'undici'

/** A process that looks addresses up at an even rate, and checks every answer, until its parent says that it is enough. */

export interface LookupTask {
  readonly baseUrl: string
  readonly token: string
  readonly perSecond: number
  readonly addressesPerCall: number
  /** Bound are `emailOf(1)` to `emailOf(bindings)`, each to `userOf` of the same number. */
  readonly bindings: number
}

export interface LookupResult {
  readonly calls: number
  readonly seconds: number
  /** From the moment at which the call was due, of calls that were answered with mappings. */
  readonly latenciesMs: readonly number[]
  /** Answers that the pepper has changed, with the new one. */
  readonly refused: number
  /** Answers that were neither right nor such a refusal; the first few in words. */
  readonly wrong: number
  readonly complaints: readonly string[]
  /** The share of the time in which this process had something to do: near 1 it measures itself. */
  readonly busy: number
}

export const emailOf = (n: number): string => `person${n}@bench.example`
export const userOf = (n: number): string => `@person${n}:bench.example`

/** Of so many people addresses are looked up, every tenth of whom has bound none. */
const SAMPLE = 30_000
const CONNECTIONS = 64
const TICK_MS = 2
const PATH = '/_matrix/identity/v2'

interface Entry {
  /** As it stands in a body, with its quotes. */
  readonly text: string
  readonly user: string | undefined
  /** As it stands in the answer; nothing when there is no user. */
  readonly answer: string
}

/** The sample under one pepper; hashed as it is needed. */
type Hashed = Map<number, Entry>

async function look({ baseUrl, token, perSecond, addressesPerCall, bindings }: LookupTask, isOver: () => boolean) {
  const pool = new Pool(baseUrl, { connections: CONNECTIONS })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const sample = Array.from({ length: SAMPLE }, (_, n) =>
    n % 10 === 0 ? bindings + 1 + n : 1 + Math.floor((n * bindings) / SAMPLE),
  )
  const latenciesMs: number[] = []
  const complaints: string[] = []
  let [calls, refused, wrong] = [0, 0, 0]
  let pepper = ''
  let hashed: Hashed = new Map()

  function entryOf(n: number): Entry {
    let entry = hashed.get(n)
    if (entry === undefined) {
      const text = JSON.stringify(hash('sha256', `${emailOf(n)} email ${pepper}`, 'buffer').toString('base64url'))
      const user = n <= bindings ? userOf(n) : undefined
      entry = { text, user, answer: user === undefined ? '' : `${text}:"${user}"` }
      hashed.set(n, entry)
    }
    return entry
  }

  function usePepper(found: string): void {
    if (found === pepper) return
    pepper = found
    hashed = new Map()
  }

  function complain(text: string): void {
    wrong++
    if (complaints.length < 5) complaints.push(text)
  }

  /** Reading an answer as JSON takes longer than making it: one that is written as it was asked for is not read. */
  function isAsAsked(entries: readonly Entry[], text: string): boolean {
    const bound = entries.filter(({ answer }) => answer !== '')
    return text === `{"mappings":{${bound.map(({ answer }) => answer).join()}}}`
  }

  function check(entries: readonly Entry[], mappings: Readonly<Record<string, string>>): void {
    const bound = entries.filter(({ user }) => user !== undefined)
    const mismatch = bound.find(({ text, user }) => mappings[text.slice(1, -1)] !== user)
    if (mismatch !== undefined) complain(`${mismatch.text} is not ${mismatch.user}`)
    else if (Object.keys(mappings).length !== new Set(bound).size) complain('more was found than is bound')
  }

  async function call(dueAt: number): Promise<void> {
    const asked = pepper
    const first = Math.floor(Math.random() * SAMPLE)
    const entries = Array.from({ length: addressesPerCall }, (_, n) => entryOf(sample[(first + n) % SAMPLE]!))
    const body = `{"algorithm":"sha256","pepper":"${asked}","addresses":[${entries.map(({ text }) => text).join()}]}`
    const answer = await pool.request({ method: 'POST', path: `${PATH}/lookup`, headers, body })
    const text = await answer.body.text()
    const tookMs = performance.now() - dueAt
    if (answer.statusCode === 200) {
      latenciesMs.push(tookMs)
      if (!isAsAsked(entries, text)) check(entries, JSON.parse(text).mappings)
      return
    }
    const said = JSON.parse(text)
    if (answer.statusCode === 400 && said.errcode === 'M_INVALID_PEPPER' && said.lookup_pepper !== asked) {
      refused++
      usePepper(said.lookup_pepper)
    } else complain(text.slice(0, 300))
  }

  const details = await pool.request({ method: 'GET', path: `${PATH}/hash_details`, headers })
  usePepper(((await details.body.json()) as { lookup_pepper: string }).lookup_pepper)
  const begun = performance.now()
  const idle = performance.eventLoopUtilization()
  const underWay = new Set<Promise<void>>()
  const dueAt = (): number => begun + (calls * 1_000) / perSecond
  while (!isOver()) {
    for (; dueAt() <= performance.now(); calls++) {
      const pending = call(dueAt()).catch((error: Error) => complain(error.message))
      underWay.add(pending)
      pending.then(() => underWay.delete(pending))
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS))
  }
  await Promise.all(underWay)
  const busy = performance.eventLoopUtilization(idle).utilization
  const seconds = (performance.now() - begun) / 1_000
  await pool.destroy()
  return { calls, seconds, latenciesMs, refused, wrong, complaints, busy } satisfies LookupResult
}

let isOver = false
process.on('disconnect', () => process.exit(0))
process.once('message', (task: LookupTask) => {
  process.once('message', () => {
    isOver = true
  })
  look(task, () => isOver).then(
    (result) => process.send?.(result),
    (error: Error) => {
      console.error(error.message)
      process.exit(1)
    },
  )
})
