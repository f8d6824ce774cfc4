import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createServerLog } from '../../../src/cli/serve/log.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }))
afterEach(() => void vi.useRealTimers())

function record(format: 'json' | 'pretty' = 'json') {
  const lines: string[] = []
  const made = createServerLog({ level: 'info', format }, false, {
    output: { write: (line: string) => void lines.push(line) },
  })
  return { ...made, lines, read: () => lines.map((line) => JSON.parse(line)) }
}

test('of equal warnings the first is written, and after a minute how many more there were', () => {
  const { log, read, sampling } = record()
  for (let index = 0; index < 5; index++) log.warn({ request_id: `r${index}` }, 'a server is away')
  log.warn('another thing')
  expect(read()).toMatchObject([{ request_id: 'r0' }, { msg: 'another thing' }])
  vi.advanceTimersByTime(60_000)
  expect(read().slice(2)).toMatchObject([{ level: 'warn', msg: 'a server is away', repeated: 4 }])
  expect(sampling.counts).toEqual({ warn: 6, error: 0, fatal: 0 })
})

test('a warning about another user or room is another warning, up to a number that nobody can flood the log with', () => {
  const { log, read } = record()
  for (const room of ['!a', '!b', '!a']) log.warn({ err: new Error('no'), room }, 'a room is broken')
  log.warn({ user: '@a:hs' }, 'a room is broken')
  expect(read()).toMatchObject([{ room: '!a' }, { room: '!b' }, { user: '@a:hs' }])
  vi.advanceTimersByTime(60_000)
  expect(read().slice(3)).toMatchObject([{ msg: 'a room is broken', room: '!a', repeated: 1 }])
  const before = read().length
  for (let index = 0; index < 1_000; index++) log.warn({ origin: `s${index}` }, 'events came in vain')
  expect(read().length).toBe(before + 21)
  vi.advanceTimersByTime(60_000)
  expect(read().at(-1)).toMatchObject({ repeated: 979 })
  expect(read().at(-1)).not.toHaveProperty('origin')
})

test('a steady stream is one line a minute, none is lost from the count, and one that has ended is written at once again', () => {
  const { log, read } = record()
  for (let second = 0; second < 180; second++) {
    log.error('no')
    vi.advanceTimersByTime(1_000)
  }
  vi.advanceTimersByTime(60_000)
  const lines = read()
  expect(lines.length).toBeLessThanOrEqual(5)
  expect(lines.reduce((sum, { repeated }) => sum + (repeated ?? 1), 0)).toBe(180)
  vi.advanceTimersByTime(60_000)
  log.error('no')
  expect(read().length).toBe(lines.length + 1)
})

test('errors of different kinds or places are different; a fatal one and what is no warning are always written', () => {
  const { log, read } = record()
  const first = () => new Error('x')
  const second = () => Object.assign(new Error('x'), { code: 'EPIPE' })
  for (const make of [first, first, second]) log.error({ err: make() }, 'a request failed')
  for (let index = 0; index < 3; index++) log.info('said')
  for (let index = 0; index < 3; index++) log.fatal('the end')
  expect(read().map(({ level }) => level)).toEqual([
    'error',
    'error',
    ...Array(3).fill('info'),
    ...Array(3).fill('fatal'),
  ])
})

test('a flush writes what waits, so that a server that stops leaves nothing out', () => {
  const { log, read, sampling } = record()
  log.child({ request_id: 'r' }).warn('twice')
  log.warn('twice')
  sampling.flush()
  expect(read()).toMatchObject([{ request_id: 'r' }, { repeated: 1 }])
})

test('more kinds than are remembered: each is written, and none of them is kept for ever', () => {
  const { log, lines } = record()
  for (let index = 0; index < 1_200; index++) log.warn(`kind ${index}`)
  expect(lines.length).toBe(1_200)
  log.warn('kind 0')
  log.warn('kind 1199')
  expect(lines.length).toBe(1_201)
})

test.each(['json', 'pretty'] as const)(
  'the newest warnings are remembered, in %s too, without what may be of somebody',
  (format) => {
    const { log, recent } = record(format)
    log.info('not this')
    const err = Object.assign(new Error('duplicate key: canary of @alice:hs\n    at canary (in the text)'), {
      code: '23505',
      detail: 'canary',
    })
    log.child({ request_id: 'r-1' }).error({ err, room: '!canary', url: '/x?y=canary' }, 'a request failed')
    log.error(new Error('canary alone'))
    const [first, second] = recent.list()
    expect(first).toMatchObject({ level: 'error', message: 'a request failed', request_id: 'r-1' })
    expect(first?.error).toMatchObject({ type: 'Error', code: '23505' })
    expect(first?.error?.at[0]).toContain('log-sampling.test.ts')
    expect(second).toMatchObject({ message: '' })
    expect(JSON.stringify(recent.list())).not.toContain('canary')
  },
)

test('what is remembered has bounds, in lines and in the length of each', () => {
  const { log, recent } = record()
  for (let index = 0; index < 300; index++) log.warn({ text: 'x'.repeat(100_000) }, `kind ${index}`)
  const list = recent.list()
  expect(list.length).toBe(100)
  expect(list.at(-1)).toMatchObject({ message: 'kind 299' })
})
