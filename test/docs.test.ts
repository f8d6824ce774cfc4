import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECT_ROOT } from './support/project.ts'

const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'docs/ARCHITECTURE.md',
  'docs/GLOSSARY.md',
  'docs/administration.md',
  'docs/roadmap.md',
  'docs/operations.md',
  'docs/security-tests.md',
]

test.each(PAGES)('%s names only files that are there', (page) => {
  const text = readFileSync(join(PROJECT_ROOT, page), 'utf8')
  const paths = [...text.matchAll(/`((?:src|test|docs|bench|config|migrations|scripts)\/[\w./-]*)`/g)].map(
    ([, path]) => path!,
  )
  const links = [...text.matchAll(/\]\(([^):#]+)\)/g)].map(([, link]) => join(dirname(page), link!))
  expect([...paths, ...links].filter((path) => !existsSync(join(PROJECT_ROOT, path)))).toEqual([])
})

test('the walks of docs/ARCHITECTURE.md name functions that are there', () => {
  const text = readFileSync(join(PROJECT_ROOT, 'docs/ARCHITECTURE.md'), 'utf8')
  const walks = text.split(/^## /m).filter((section) => section.startsWith('A walk: '))
  expect(walks).toHaveLength(4)
  for (const walk of walks) {
    const steps = [...walk.matchAll(/`(src\/[\w./-]+\.ts):(\w+)`/g)]
    expect(steps.length).toBeGreaterThan(5)
    const missing = steps.filter(([, file, name]) => {
      const code = readFileSync(join(PROJECT_ROOT, file!), 'utf8')
      return !new RegExp(`^export (?:async )?(?:function|const|class) ${name}\\b`, 'm').test(code)
    })
    expect(missing.map(([step]) => step)).toEqual([])
  }
})

test("every command in the README's code blocks is a script of package.json or the built program", () => {
  const { scripts } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')) as { scripts: object }
  const readme = readFileSync(join(PROJECT_ROOT, 'README.md'), 'utf8')
  const used = [...readme.matchAll(/npm (?:run )?([a-z:]+)/g)].map(([, name]) => name!).filter((name) => name !== 'ci')
  expect(used.length).toBeGreaterThan(2)
  expect(used.filter((name) => !(name in scripts))).toEqual([])
})

test('every test that is said to notice a hole is there, and every hole is noticed or not built', () => {
  const rows = readFileSync(join(PROJECT_ROOT, 'docs/security-tests.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| What goes wrong'))
  expect(rows.length).toBeGreaterThan(50)
  const missing = rows.flatMap((row) => {
    const proofs = [...row.matchAll(/`(test\/[^`]+)` ((?:“[^”]+”(?:, )?)+)/g)]
    const named = proofs.flatMap(([, file, titles]) =>
      [...titles!.matchAll(/“([^”]+)”/g)].map(([, title]) => [file!, title!] as const),
    )
    if (named.length === 0 && !row.includes('not built')) return [`nothing notices: ${row}`]
    return named.flatMap(([file, title]) =>
      existsSync(join(PROJECT_ROOT, file)) && readFileSync(join(PROJECT_ROOT, file), 'utf8').includes(title)
        ? []
        : [`${file}: ${title}`],
    )
  })
  expect(missing).toEqual([])
})
