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

/**
 * `npm run check`, with programs in place of npm, vitest and the build that do what a test says. They are of the shell, which starts in no
 * time.
 */

const CHECK = fileURLToPath(new URL('../scripts/check.mjs', import.meta.url))
const PASSES = ':'
/** Notes in a file which process it is, and goes on until it is ended. */
const waits = (name: string) => `echo $$ > ${name}; exec sleep 300`

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'hearth-check-'))
  mkdirSync(join(directory, 'bin'))
})
afterEach(() => rmSync(directory, { recursive: true }))

function install(name: string, script: string): void {
  const path = join(directory, 'bin', name)
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
}

interface Programs {
  readonly build?: string
  readonly npm?: string
  readonly vitest?: string
}

function check({ build = PASSES, npm = PASSES, vitest = PASSES }: Programs, words: readonly string[] = []) {
  install('node', build)
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
const log = (name: string) => `echo "$*" >> ${name}`

it('passes if all of it does, and hands the tests on that were asked for', async () => {
  const { code, err } = await check({ build: log('node'), npm: log('npm'), vitest: log('vitest') }, ['test/core']).ended
  expect([code, err]).toEqual([0, ''])
  expect(logged('node')).toBe('scripts/build.mjs\n')
  expect(logged('npm').split('\n')).toEqual([
    'run --silent typecheck',
    'run --silent lint',
    'run --silent docs -- --check',
    '',
  ])
  expect(logged('vitest')).toBe('run test/core\n')
})

it('fails with a part that fails, names it, shows all of its output, and ends the tests', async () => {
  const npm = `case "$*" in *lint)
    until [ -s tests ]; do sleep 0.02; done
    seq 20000
    seq 20001 40000 >&2
    exit 3
  esac`
  const { code, err } = await check({ npm, vitest: waits('tests') }).ended
  expect(code).toBe(3)
  expect(err).toMatch(/^\nnpm run lint failed:\n\n/)
  const shown = err.trim().split('\n').slice(2).map(Number)
  expect(shown.sort((a, b) => a - b)).toEqual(Array.from({ length: 40_000 }, (_, line) => line + 1))
  expect(isAlive(pidIn('tests')!)).toBe(false)
})

it('fails with the tests, and with the build, after which it begins nothing', async () => {
  expect((await check({ vitest: 'exit 5' }).ended).code).toBe(5)
  const build = 'printf "built nothing"; exit 4'
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
