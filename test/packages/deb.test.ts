import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FILES } from '../../scripts/package/deb.ts'
import { PROJECT_ROOT } from '../support/project.ts'

const read = (name: string) => readFileSync(join(PROJECT_ROOT, name), 'utf8')
const SCRIPTS = ['hearth', 'postinst', 'prerm', 'postrm'].map((name) => `contrib/debian/${name}`)

test('the package takes files that are there, and its scripts can be read', () => {
  expect(FILES.filter(([from]) => !existsSync(join(PROJECT_ROOT, from)))).toEqual([])
  for (const script of SCRIPTS) execFileSync('sh', ['-n', script], { cwd: PROJECT_ROOT })
})

test('scripts, unit and question agree on names and places', () => {
  const unit = read('contrib/systemd/hearth.service')
  const places = new Map(FILES.map(([from, to]) => [from, `/${to}`]))
  expect(unit).toContain(`ExecStart=${places.get('contrib/debian/hearth')} serve --config /etc/hearth/hearth.yaml\n`)
  expect(unit).toMatch(/^User=hearth\nGroup=hearth\nStateDirectory=hearth$/m)
  expect(read('contrib/debian/postinst')).toMatch(/adduser --system --group --home \/var\/lib\/hearth .* hearth >&2/)
  const [, question] = /^Template: (.*)$/m.exec(read('contrib/debian/templates'))!
  expect(read('contrib/debian/postrm').match(/hearth\/[a-z]+-[a-z]+/g)).toEqual(Array(3).fill(question))
})

/** A `node` that prints its words and what it was given to start with, in the place of the one that the script names. */
function start(words: readonly string[], env: Readonly<Record<string, string>> = {}): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-wrapper-'))
  try {
    writeFileSync(join(folder, 'node'), '#!/bin/sh\nshift\nprintf "%s\\n" "$HEARTH_CONFIG" "$@"\n', { mode: 0o755 })
    // Only root is sent on as another user, who need not exist here.
    const text = read('contrib/debian/hearth')
      .replaceAll('/usr/bin/node', join(folder, 'node'))
      .replace(/^.*runuser.*\n/m, '')
    const script = join(folder, 'hearth')
    writeFileSync(script, text, { mode: 0o755 })
    return execFileSync(script, words, { encoding: 'utf8', env: { PATH: process.env.PATH, ...env } })
      .trimEnd()
      .split('\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('the command of the package knows its configuration and its data, and yields to other wishes', () => {
  const usual = '/etc/hearth/hearth.yaml'
  expect(start(['user', 'create', 'a b'])).toEqual([usual, 'user', 'create', 'a b'])
  expect(start(['init', 'example.org'])).toEqual([usual, 'init', '--data-dir', '/var/lib/hearth', 'example.org'])
  expect(start(['serve'], { HEARTH_CONFIG: '/srv/other.yaml' })).toEqual(['/srv/other.yaml', 'serve'])
})

/** What the script before an upgrade makes of a service in this state: what it asked systemd to do, and whether it is to be started again. */
function beforeUpgrade(state: string): { readonly asked: string[]; readonly isToStart: boolean } {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-prerm-'))
  try {
    mkdirSync(join(folder, 'run/systemd/system'), { recursive: true })
    const fake = `#!/bin/sh\necho "$*" >> ${folder}/asked\ncase "$*" in *is-active*) echo ${state}; [ ${state} = active ];; esac\n`
    writeFileSync(join(folder, 'systemctl'), fake, { mode: 0o755 })
    writeFileSync(join(folder, 'prerm'), read('contrib/debian/prerm').replaceAll('/run/', `${folder}/run/`))
    execFileSync('sh', [join(folder, 'prerm'), 'upgrade', '2'], { env: { PATH: `${folder}:${process.env.PATH}` } })
    const asked = readFileSync(join(folder, 'asked'), 'utf8').trimEnd().split('\n')
    return {
      asked: asked.filter((words) => !words.includes('is-active')),
      isToStart: existsSync(join(folder, 'run/hearth-upgraded')),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('a server that runs in whatever way is stopped before its files are replaced, and started afterwards', () => {
  const stops = ['stop hearth.service']
  for (const state of ['active', 'activating', 'reloading', 'refreshing'])
    expect(beforeUpgrade(state), state).toEqual({ asked: stops, isToStart: true })
  expect(beforeUpgrade('deactivating')).toEqual({ asked: stops, isToStart: false })
  for (const state of ['inactive', 'failed', 'unknown'])
    expect(beforeUpgrade(state), state).toEqual({ asked: [], isToStart: false })
})
