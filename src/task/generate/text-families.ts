// Families about the text in files: count, pick a line, sort, pick a column, replace.
import { contains, type Family, hasLine, isFile, together } from "./goal.ts";
import type { World } from "./world.ts";

export const TEXT_FAMILIES: readonly Family[] = [
  {
    name: "count",
    looks: false,
    writesOtherEndings: true,
    build: world => {
      const log = world.name(".log");
      const to = world.name(".txt");
      const word = world.word();
      const hits = 2 + world.random.integer(5);
      const lines = world.random.shuffle([
        ...Array.from({ length: hits }, () => `${word} ${world.word()}`),
        ...world.lines(3, 2),
      ]);
      world.write(log, lines);
      return {
        instruction: world.say(
          `How many lines of ${log} have ${word}? Write the number to ${to}.`,
          `Count the lines with the word ${word} in ${log} and write the number to ${to}.`,
        ),
        solution: [`grep -c ${word} ${log} > ${to}`],
        flawed: [[`grep ${word} ${log} > ${to}`], [`wc -l ${log} > ${to}`], [`grep -c ${word} ${log}`]],
        checks: [
          isFile(to),
          {
            name: `${to} holds one number`,
            condition: `[ "$(wc -w < ${to})" -eq 1 ] && grep -qx '[0-9]*' ${to}`,
          },
          contains(to, [`${hits}`]),
        ],
      };
    },
  },
  {
    name: "pick-line",
    looks: false,
    build: world => {
      const from = world.name(".txt");
      const to = world.name(".txt");
      const lines = world.lines(6);
      const number = 2 + world.random.integer(4);
      world.write(from, lines);
      return {
        instruction: world.say(
          `Put only line ${number} of ${from} into ${to}.`,
          `Write line ${number} of ${from} to ${to}.`,
        ),
        solution: [`sed -n ${number}p ${from} > ${to}`],
        flawed: [
          [`sed ${number}p ${from} > ${to}`],
          [`head -${number} ${from} > ${to}`],
          [`sed -n ${number}p ${from}`],
        ],
        checks: [isFile(to), hasLine(to, lines[number - 1]), contains(to, [lines[number - 1]])],
      };
    },
  },
  {
    name: "sort-unique",
    looks: false,
    build: world => {
      const from = world.name(".txt");
      const to = world.name(".txt");
      const words = world.lines(4);
      world.write(from, world.random.shuffle([...words, words[0], words[2]]));
      return {
        instruction: world.say(
          `Write the sorted unique lines of ${from} to ${to}.`,
          `Sort ${from} without repeated lines and save to ${to}.`,
        ),
        solution: [`sort -u ${from} > ${to}`],
        flawed: [[`sort ${from} > ${to}`], [`uniq ${from} > ${to}`], [`sort -u ${from}`]],
        checks: [
          isFile(to),
          { name: `${to} is sorted`, condition: `[ -s ${to} ] && LC_ALL=C sort -c ${to}` },
          contains(to, [...words].sort()),
        ],
      };
    },
  },
  {
    name: "pick-column",
    looks: false,
    build: world => {
      const from = world.name(".txt");
      const to = world.name(".txt");
      const rows = world.lines(3, 3);
      const column = 1 + world.random.integer(3);
      const picked = rows.map(row => row.split(" ")[column - 1]);
      world.write(from, rows);
      return {
        instruction: world.say(
          `Save column ${column} of ${from} in ${to}.`,
          `Write word ${column} of every line in ${from} to ${to}.`,
        ),
        solution: [`cut -d' ' -f${column} ${from} > ${to}`],
        flawed: [
          [`cut -f${column} ${from} > ${to}`],
          [`head -${column} ${from} > ${to}`],
          [`cut -d' ' -f${column} ${from}`],
        ],
        checks: [isFile(to), hasLine(to, picked[0]), contains(to, picked)],
      };
    },
  },
  {
    name: "replace",
    looks: false,
    build: world => {
      const file = world.name(world.say(".txt", ".conf"));
      const [from, to] = [world.word(), world.word()];
      const lines = textAround(world, from);
      world.write(file, lines);
      const hasNew = { name: `${file} has ${to}`, condition: `grep -q ${to} ${file}` };
      const lacksOld = { name: `${file} lacks ${from}`, condition: `! grep -q ${from} ${file}` };
      return {
        instruction: world.say(
          `Replace the word ${from} with ${to} in ${file}.`,
          `In ${file}, change every ${from} to ${to}.`,
        ),
        solution: [`sed -i s/${from}/${to}/ ${file}`],
        flawed: [
          [`sed s/${from}/${to}/ ${file}`],
          [`sed -i s/${to}/${from}/ ${file}`],
          [`sed s/${from}/${to}/ ${file} > ${file}`],
        ],
        checks: [
          hasNew,
          together(`no ${from} is left`, hasNew, lacksOld),
          contains(
            file,
            lines.map(line => line.replace(from, to)),
          ),
        ],
      };
    },
  },
];

/** Three lines, two of them with the word. */
function textAround(world: World, word: string): string[] {
  const [first, second] = world.lines(2);
  return [`${word} ${first}`, second, `${first} ${word}`];
}
