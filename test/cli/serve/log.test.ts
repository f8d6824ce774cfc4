import { expect, test } from 'vitest'
import { createLog } from '../../../src/cli/serve/log.ts'

function record(options: Parameters<typeof createLog>[0], isTerminal = false) {
  const lines: string[] = []
  const log = createLog(options, isTerminal, { write: (line) => lines.push(line) })
  return { log, lines }
}

test('away from a terminal a line is JSON, with level name and time', () => {
  const { log, lines } = record({ level: 'info', format: 'auto' })
  log.debug('not written')
  log.info({ request_id: 'r1' }, 'hello')
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { level: 'info', time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/), request_id: 'r1', msg: 'hello' },
  ])
})

test('secrets are taken out, and query strings, wherever they are named', () => {
  for (const format of ['json', 'pretty'] as const) {
    const { log, lines } = record({ level: 'trace', format })
    const secrets = { password: 'canary', access_token: 'canary', token: 'canary', auth: { password: 'canary' } }
    log.info({ ...secrets, headers: { authorization: 'Bearer canary', cookie: 'canary' }, body: secrets })
    log.child({ token: 'canary' }).warn({ url: '/sync?access_token=canary', path: '/x?y=canary' }, 'asked')
    expect(lines.join('')).not.toContain('canary')
    expect(lines.join('')).toContain('/sync')
  }
})

test('on a terminal a line is for people, with the stack of an error below', () => {
  const { log, lines } = record({ level: 'info', format: 'auto' }, true)
  log.warn({ port: 8008, err: new Error('broken') }, 'careful')
  expect(lines.join('')).toMatch(/^\d\d:\d\d:\d\d .*warn.* careful port=8008\nError: broken\n +at /)
})

test('without colours where there is no terminal', () => {
  const { log, lines } = record({ level: 'info', format: 'pretty' })
  log.info('plain')
  expect(lines).toEqual([expect.stringMatching(/^\d\d:\d\d:\d\d info {2}plain\n$/)])
})
