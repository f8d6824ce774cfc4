import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { dateChangelog, makeRelease, nextVersion } from '../../scripts/package/make-release.ts'
import { PROJECT_ROOT } from '../support/project.ts'

const FILES = ['package.json', 'package-lock.json', 'contrib', 'migrations/previous-releases']
const { version } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')) as { version: string }

let root: string
const git = (...words: string[]) => execFileSync('git', words, { cwd: root, encoding: 'utf8' }).trim()
const read = (file: string) => readFileSync(join(root, file), 'utf8')

/** The files of this checkout that a release changes, with a history of their own. */
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hearth-release-'))
  for (const file of FILES) cpSync(join(PROJECT_ROOT, file), join(root, file), { recursive: true })
  writeFileSync(
    join(root, 'CHANGELOG.md'),
    '# Changelog\n\n## Not yet released\n\n- What is new.\n\n## 0.1.0\n\n- Old.\n',
  )
  git('init', '--quiet')
  git('config', 'user.name', 'Tester')
  git('config', 'user.email', 'tester@example.org')
  git('add', '.')
  git('commit', '--quiet', '--message', 'all')
})
afterEach(() => rmSync(root, { recursive: true }))

test('a release raises the version wherever it is written, dates the changelog, tags, and is a release before the next', async () => {
  const next = nextVersion(version, 'minor')
  expect(await makeRelease(root, 'minor', '2026-11-25')).toBe(next)
  expect(git('status', '--porcelain')).toBe('')
  expect(read('CHANGELOG.md')).toContain(`\n## ${next}, 2026-11-25\n\n- What is new.\n\n## 0.1.0\n`)

  const { packages, ...lock } = JSON.parse(read('package-lock.json'))
  expect([JSON.parse(read('package.json')).version, lock.version, packages[''].version]).toEqual([next, next, next])
  const others = (text: string) => Object.entries(JSON.parse(text).packages).slice(1)
  expect(others(read('package-lock.json'))).toEqual(
    others(readFileSync(join(PROJECT_ROOT, 'package-lock.json'), 'utf8')),
  )
  expect(read('contrib/helm/hearth/Chart.yaml')).toContain(`version: ${next}\nappVersion: ${next}\n`)
  for (const name of ['compose', 'with-postgres'])
    expect(read(`contrib/compose/${name}.yaml`)).toContain(`image: hearth:${next}\n`)

  const released = git('rev-parse', `v${next}^{commit}`)
  expect(git('rev-parse', 'HEAD~1')).toBe(released)
  const lines = (text: string) => text.split('\n').filter((line) => /^[0-9a-f]{40}$/.test(line))
  const before = lines(readFileSync(join(PROJECT_ROOT, 'migrations/previous-releases'), 'utf8'))
  expect(lines(read('migrations/previous-releases'))).toEqual([released, ...before.slice(0, 2)])
})

test('nothing is changed while there is something in the way', async () => {
  const head = git('rev-parse', 'HEAD')
  writeFileSync(join(root, 'notes'), 'not committed')
  await expect(makeRelease(root, 'patch', '2026-11-25')).rejects.toThrow('not clean')
  rmSync(join(root, 'notes'))
  git('tag', `v${nextVersion(version, 'patch')}`)
  await expect(makeRelease(root, 'patch', '2026-11-25')).rejects.toThrow('already')
  expect(await makeRelease(root, 'minor', '2026-11-25')).toBe(nextVersion(version, 'minor'))
  // The changelog has nothing new since.
  await expect(makeRelease(root, 'minor', '2026-11-25')).rejects.toThrow('Not yet released')
  expect(git('rev-list', '--count', `${head}..HEAD`)).toBe('2')
  expect(git('status', '--porcelain')).toBe('')
})

test('the versions, and sections of the changelog that cannot be released', () => {
  expect(nextVersion('0.1.9', 'patch')).toBe('0.1.10')
  expect(nextVersion('1.9.3', 'minor')).toBe('1.10.0')
  expect(() => nextVersion('1.0.0-beta', 'patch')).toThrow('three numbers')
  expect(() => dateChangelog('# Changelog\n\n## Not yet released\n\n## 0.1.0\n\n- Old.\n', 'x')).toThrow()
  expect(() => dateChangelog('# Changelog\n', 'x')).toThrow()
  expect(dateChangelog('## 0.1.0, not yet released\n\n- All.\n', '0.2.0, 2026-11-25')).toBe(
    '## 0.2.0, 2026-11-25\n\n- All.\n',
  )
})
