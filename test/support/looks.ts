import { mkdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

/** Where pictures of pages go; nowhere without it. */
const pictures = process.env.PICTURES

/** How wide a page is shown, and in which colours. */
export interface Shape {
  readonly name: string
  readonly width: number
  readonly colorScheme: 'light' | 'dark'
}

interface Violation {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string }[]
}

/** Looks at a page in these shapes: it must fit each, and pass the check. Takes pictures where they are wanted. */
export async function lookAt(
  page: Page,
  name: string,
  shapes: readonly Shape[],
  check: (name: string) => Promise<void>,
): Promise<void> {
  for (const { name: shape, width, colorScheme } of shapes) {
    await page.setViewportSize({ width, height: 800 })
    await page.emulateMedia({ colorScheme })
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${name} ${shape}`).toBe(true)
    await check(`${name} ${shape}`)
    if (pictures === undefined) continue
    await mkdir(pictures, { recursive: true })
    await page.screenshot({ path: join(pictures, `${name}-${shape}.png`), fullPage: true })
  }
}

let axe: Promise<string> | undefined

/** What keeps somebody from using a page, as axe sees it. The checker gets into the page past its policy: its context says `bypassCSP`. */
export async function graveProblems(page: Page): Promise<string[]> {
  axe ??= readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  await page.evaluate(await axe)
  const found = (await page.evaluate('axe.run({ resultTypes: ["violations"] })')) as { violations: Violation[] }
  const grave = found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  return grave.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}
