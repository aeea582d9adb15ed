// Families whose instruction does not say enough: the agent has to read a file or list the folder before it can act.
import { contains, type Family, hasLine, isFile, isFolder, isGone, together } from "./goal.ts";

/** Endings of a lone file that the agent has to find. */
const LONE_ENDINGS = ["csv", "log", "json", "md"];
/** A misspelt command and the right one. */
const TYPOS = [
  ["ecko", "echo"],
  ["eho", "echo"],
  ["prinf", "printf"],
  ["echoo", "echo"],
] as const;

export const LOOK_FAMILIES: readonly Family[] = [
  {
    name: "repair",
    looks: true,
    build: world => {
      const script = world.name(".sh");
      const text = world.word();
      const [wrong, right] = world.random.pick(TYPOS);
      world.write(script, [`# ${world.word()}`, `${wrong} ${text}`]);
      const runs = { name: `${script} runs`, condition: `sh ${script}` };
      const guess = world.random.pick(TYPOS)[0];
      return {
        instruction: world.say(
          `The script ${script} has a wrong command. Fix it.`,
          `Running ${script} fails. Repair it.`,
        ),
        solution: [`cat ${script}`, `sed -i s/${wrong}/${right}/ ${script}`],
        flawed: [
          [`sed -i s/${guess}/${right}/ ${script}`],
          [`cat ${script}`],
          [`cat ${script}`, `sed s/${wrong}/${right}/ ${script}`],
          [`sh ${script}`],
        ],
        checks: [
          { name: `no ${wrong} is left`, condition: `! grep -qw ${wrong} ${script} && [ -s ${script} ]` },
          runs,
          { name: `${script} prints ${text}`, condition: `[ "$(sh ${script})" = ${text} ]` },
        ],
      };
    },
  },
  {
    name: "read-setting",
    looks: true,
    build: world => {
      const file = world.name(".conf");
      const to = world.name(".txt");
      const [key, other] = [world.word(), world.word()];
      const value = world.random.chance(0.5) ? world.number() : world.word();
      const otherValue = world.number();
      world.write(file, world.random.shuffle([`${key}=${value}`, `${other}=${otherValue}`]));
      return {
        instruction: world.say(
          `Write the ${key} setting from ${file} into ${to}.`,
          `Find the value of ${key} in ${file} and write only the value to ${to}.`,
        ),
        solution: [`cat ${file}`, `echo ${value} > ${to}`],
        flawed: [
          [`echo ${world.number()} > ${to}`],
          [`grep ${key} ${file} > ${to}`],
          [`cat ${file}`, `echo ${otherValue} > ${to}`],
        ],
        checks: [
          isFile(to),
          { name: `${to} has ${value}`, condition: `grep -qw ${value} ${to}` },
          contains(to, [value]),
        ],
      };
    },
  },
  {
    name: "rename-lone-file",
    looks: true,
    needsLoneFile: true,
    build: world => {
      const ending = world.random.pick(LONE_ENDINGS);
      const file = world.name(`.${ending}`);
      const to = world.name(".txt");
      const lines = world.lines(2);
      world.write(file, lines);
      world.write(world.name(".txt"), world.lines(1));
      return {
        instruction: world.say(
          `Rename the only ${ending} file to ${to}.`,
          `There is one file ending in .${ending} here. Call it ${to}.`,
        ),
        solution: ["ls", `mv ${file} ${to}`],
        flawed: [[`mv ${world.name(`.${ending}`)} ${to}`], ["ls", `cp ${file} ${to}`], ["ls"]],
        checks: [isFile(to), contains(to, lines), together(`${file} is gone`, isGone(file), isFile(to))],
      };
    },
  },
  {
    name: "copy-named-file",
    looks: true,
    build: world => {
      const [note, to] = [world.name(".txt"), world.name(".txt")];
      const file = world.name(world.say(".txt", ".dat"));
      const lines = world.lines(2);
      world.write(file, lines);
      world.write(note, [file]);
      world.write(world.name(".dat"), world.lines(1));
      return {
        instruction: world.say(
          `Read ${note}, it holds a file name. Copy the named file to ${to}.`,
          `The file ${note} names another file. Copy that file to ${to}.`,
        ),
        solution: [`cat ${note}`, `cp ${file} ${to}`],
        flawed: [[`cp ${note} ${to}`], [`cat ${note}`, `mv ${file} ${to}`], [`cat ${note}`]],
        checks: [
          isFile(to),
          contains(to, lines),
          together(`${file} stayed`, contains(file, lines), contains(to, lines)),
        ],
      };
    },
  },
  {
    name: "rename-by-content",
    looks: true,
    build: world => {
      const [first, second, to] = [world.name(".dat"), world.name(".dat"), world.name(".txt")];
      const word = world.word();
      const lines = [world.word(), word];
      world.write(first, lines);
      world.write(second, world.lines(2));
      return {
        instruction: world.say(
          `One dat file has the word ${word}. Rename it to ${to}.`,
          `Find the dat file that holds ${word} and call it ${to}.`,
        ),
        solution: [`grep -l ${word} *.dat`, `mv ${first} ${to}`],
        flawed: [
          [`mv ${world.name(".dat")} ${to}`],
          [`grep -l ${word} *.dat`, `mv ${second} ${to}`],
          [`grep ${word} *.dat > ${to}`],
        ],
        checks: [isFile(to), contains(to, lines), together(`${first} is gone`, isGone(first), isFile(to))],
      };
    },
  },
  {
    name: "follow-note",
    looks: true,
    build: world => {
      const note = world.name(".txt");
      const [folder, file] = [world.name(), world.name(".txt")];
      const text = world.word();
      world.write(note, [`folder ${folder}`, `file ${file}`, `text ${text}`]);
      return {
        instruction: world.say(
          `The note ${note} names a folder, a file and a text. Make the folder, and in it the file with the text.`,
          `Read ${note}. Create the folder and put the file with its text there.`,
        ),
        solution: [`cat ${note}`, `mkdir ${folder}`, `echo ${text} > ${folder}/${file}`],
        flawed: [
          [`cat ${note}`, `mkdir ${folder}`],
          [`cat ${note}`, `echo ${text} > ${file}`],
          [`cat ${note}`, `mkdir ${folder}`, `touch ${folder}/${file}`],
        ],
        checks: [isFolder(folder), isFile(`${folder}/${file}`), contains(`${folder}/${file}`, [text])],
      };
    },
  },
  {
    name: "choose-by-note",
    looks: true,
    build: world => {
      const note = world.name(".txt");
      const [left, right] = [world.name(), world.name()];
      const [side, chosen, other] = world.random.chance(0.5) ? ["left", left, right] : ["right", right, left];
      world.write(note, [world.word(), side]);
      return {
        instruction: world.say(
          `The note ${note} says left or right. For left make the directory ${left}, for right make ${right}.`,
          `Read ${note}. If it says left, create the directory ${left}, if it says right, create ${right}.`,
        ),
        solution: [`cat ${note}`, `mkdir ${chosen}`],
        flawed: [[`mkdir ${left}`], [`cat ${note}`, `mkdir ${other}`], [`mkdir ${left} ${right}`]],
        checks: [
          isFolder(chosen),
          together(`${other} was not made`, isGone(other), isFolder(chosen)),
          together(`${note} stayed as it was`, hasLine(note, side), isFolder(chosen)),
        ],
      };
    },
  },
];

/** Never trained on: known commands, put together in a way that no trained family does. */
export const HELD_OUT_FAMILIES: readonly Family[] = [
  {
    name: "delete-named-file",
    looks: true,
    build: world => {
      const note = world.name(".txt");
      const [file, kept] = [world.name(world.say(".txt", ".dat")), world.name(".dat")];
      const lines = world.lines(1);
      world.write(file, world.lines(1));
      world.write(kept, lines);
      world.write(note, [file]);
      return {
        instruction: world.say(
          `Read ${note}, it holds a file name. Remove the named file.`,
          `The file ${note} names another file. Delete that file.`,
        ),
        solution: [`cat ${note}`, `rm ${file}`],
        flawed: [[`rm ${note}`]],
        checks: [
          isGone(file),
          together(`${kept} stayed as it was`, contains(kept, lines), isGone(file)),
          together(`${note} stayed`, isFile(note), isGone(file)),
        ],
      };
    },
  },
  {
    name: "move-lone-file",
    looks: true,
    needsLoneFile: true,
    build: world => {
      const ending = world.random.pick(LONE_ENDINGS);
      const [file, folder] = [world.name(`.${ending}`), world.name()];
      const lines = world.lines(2);
      world.write(file, lines);
      world.write(world.name(".txt"), world.lines(1));
      return {
        instruction: world.say(
          `Move the only ${ending} file into a new directory ${folder}.`,
          `There is one file ending in .${ending} here. Create the directory ${folder} and move it there.`,
        ),
        solution: ["ls", `mkdir ${folder}`, `mv ${file} ${folder}`],
        flawed: [["ls"]],
        checks: [
          isFolder(folder),
          contains(`${folder}/${file}`, lines),
          together(`${file} was moved, not copied`, isGone(file), isFile(`${folder}/${file}`)),
        ],
      };
    },
  },
  {
    name: "append-setting",
    looks: true,
    build: world => {
      const file = world.name(".conf");
      const to = world.name(".txt");
      const [key, kept] = [world.word(), world.word()];
      const value = world.random.chance(0.5) ? world.number() : world.word();
      world.write(file, world.random.shuffle([`${key}=${value}`, `${world.word()}=${world.number()}`]));
      world.write(to, [kept]);
      return {
        instruction: world.say(
          `Append the ${key} setting from ${file} to ${to}.`,
          `Find the value of ${key} in ${file} and append only the value to ${to}.`,
        ),
        solution: [`cat ${file}`, `echo ${value} >> ${to}`],
        flawed: [["ls"]],
        checks: [
          hasLine(to, value),
          together(`${to} kept its line`, hasLine(to, kept), hasLine(to, value)),
          contains(to, [kept, value]),
        ],
      };
    },
  },
];
