export interface BuiltConsole {
  readonly script: string
  readonly style: string
  readonly icon: string
  readonly files: readonly string[]
}

export function buildConsole(): Promise<BuiltConsole>
