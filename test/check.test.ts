import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { isAlive } from './support/child-server.ts'
import { waitUntil } from './support/wait.ts'

/** `npm run check`, with programs in place of npm, vitest and the build that do what a test says. */

const CHECK = fileURLToPath(new URL('../scripts/check.mjs', import.meta.url))
const PASSES = ''
/** Notes in a file which process it is, and goes on until it is ended. */
const waits = (name: string) =>
  `require('node:fs').writeFileSync('${name}', String(process.pid)); setInterval(() => {}, 1000)`

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'hearth-check-'))
  mkdirSync(join(directory, 'bin'))
  mkdirSync(join(directory, 'scripts'))
})
afterEach(() => rmSync(directory, { recursive: true }))

function install(name: string, script: string): void {
  const path = join(directory, 'bin', name)
  writeFileSync(path, `#!${process.execPath}\nconst words = process.argv.slice(2)\n${script}\n`)
  chmodSync(path, 0o755)
}

interface Programs {
  readonly build?: string
  /** It has `words`, with which it was called. */
  readonly npm?: string
  readonly vitest?: string
}

function check({ build = PASSES, npm = PASSES, vitest = PASSES }: Programs, words: readonly string[] = []) {
  writeFileSync(join(directory, 'scripts/build.mjs'), build)
  install('npm', npm)
  install('vitest', vitest)
  const env = { ...process.env, PATH: `${join(directory, 'bin')}${delimiter}${process.env.PATH}` }
  const child = spawn(process.execPath, [CHECK, ...words], { cwd: directory, env })
  const ended = Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)])
  return { child, ended: ended.then(([[code], out, err]) => ({ code, out, err })) }
}

const logged = (name: string) => readFileSync(join(directory, name), 'utf8')
const pidIn = (name: string): number | undefined =>
  existsSync(join(directory, name)) ? Number(logged(name)) || undefined : undefined
const log = (name: string) => `require('node:fs').appendFileSync('${name}', words.join(' ') + '\\n');`

it('passes if all of it does, and hands the tests on that were asked for', async () => {
  const { code, err } = await check({ npm: log('npm'), vitest: log('vitest') }, ['test/core']).ended
  expect([code, err]).toEqual([0, ''])
  expect(logged('npm').split('\n')).toEqual([
    'run --silent typecheck',
    'run --silent lint',
    'run --silent docs -- --check',
    '',
  ])
  expect(logged('vitest')).toBe('run test/core\n')
})

it('fails with a part that fails, names it, shows all of its output, and ends the tests', async () => {
  const lines = Array.from({ length: 20_000 }, (_, line) => `line ${line} of what is wrong`)
  const npm = `if (words.includes('lint')) {
    while (!require('node:fs').existsSync('tests')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    process.exitCode = 3
    for (let line = 0; line < 20_000; line++) process[line % 2 ? 'stdout' : 'stderr'].write('line ' + line + ' of what is wrong\\n')
  }`
  const { code, err } = await check({ npm, vitest: waits('tests') }).ended
  expect(code).toBe(3)
  expect(err).toMatch(/^\nnpm run lint failed:\n\n/)
  expect(new Set(err.trim().split('\n').slice(2))).toEqual(new Set(lines))
  expect(isAlive(pidIn('tests')!)).toBe(false)
})

it('fails with the tests, and with the build, after which it begins nothing', async () => {
  expect((await check({ vitest: 'process.exit(5)' }).ended).code).toBe(5)
  const build = 'process.stdout.write("built nothing"); process.exitCode = 4'
  const { code, out } = await check({ build, npm: log('npm'), vitest: log('vitest') }).ended
  expect([code, out]).toEqual([4, 'built nothing'])
  expect(() => logged('npm')).toThrow('ENOENT')
  expect(() => logged('vitest')).toThrow('ENOENT')
})

it.each(['SIGINT', 'SIGTERM'] as const)('%s ends all that it has begun', async (signal) => {
  const { child, ended } = check({ npm: waits('checks'), vitest: waits('tests') })
  const pids = await waitUntil('both to run', () => {
    const found = [pidIn('checks'), pidIn('tests')].filter((pid) => pid !== undefined)
    return found.length === 2 && found
  })
  child.kill(signal)
  expect((await ended).code).not.toBe(0)
  expect(pids.map(isAlive)).toEqual([false, false])
})
