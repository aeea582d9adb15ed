// Names that generated tasks use for files, folders and content. The three lists share no word, so that a pool's names
// were never seen in another.

/** Words of training tasks. */
export const TRAIN_WORDS: readonly string[] = split(`
  acorn alder almond alpaca amber anchor anvil apricot arena arrow artist ash aspen attic autumn axle
  badge badger bagel bakery bamboo banana barley barn barrel basket bass bat beam bean beech beet bell
  bench berry birch bison blanket blaze boat bobcat bolt bonnet bow bowl bramble branch bread brick bridge
  bucket buckle bus butter button cable cactus cake calf camel canal canvas caravan carrot cart carton
  cashew cat cavern cedar celery cello cement chain cheese cherry chess chest cider cinder circle citrus
  clam cliff cloak clock clover coal coast coat cobalt cobra compass coral corn cotton cougar cradle crane
  crater crayon crown cup custard cypress daisy dance deer delta denim desk dew dinner disk dock dolphin
  domino dove drum earth easel egg ember emerald engine fable falcon fan feather fence fennel fiddle fig
  finch fjord flag flame fleece flint flute foal fog forest forge fossil fountain frog frost fruit fur
  gala garden gate gazelle gecko gem geyser giant ginger giraffe glacier glass globe gold goose gopher
  gourd grain granite gravel grove hammer harbor hare hat hawk hay hedge hen herb hickory hill hinge hive
  hollow hook horn horse hull hut ice igloo indigo ink island ivory jacket jade jaguar jam jasmine jasper
  jelly jungle juniper kale kayak kernel kettle key kite kitten knight knot koala lace lagoon lamp lantern
  lark leaf lemon library lily lion lizard lobster locket loft log lumber lunar magma magnet mallet mango
  manor mantle maple marble mare marlin mask maze medal melon mill mine mint mirror mist mitten moon motor
  mouse mug mulberry museum music mussel myrtle napkin nectar nest nettle newt nickel night noodle oak oar
  oasis oboe olive onion onyx opal orange oregano otter oven ox oyster palace pan panda pansy park parrot
  parsley parsnip pasta path pea peach peak peanut pear pearl pebble pecan pepper petal piano pigeon pike
  pine pipe planet plum pollen poplar poppy porch possum prairie puddle puppet quarry quill quilt quince
  quiver radar ram ravine reed reef ribbon ridge river robin rocket roof ruby rug rune rye sable saddle
  sage sail salmon sand sandal scarf shadow shark shed shelf shell ship shoe shovel shrimp silk sleet
  slope snow spade spear spinach spiral sponge spring sprout spruce squid stable stag star steam stem
  stool stork storm straw sun swallow swamp swan sweater sword tailor tangle tarn teapot temple thimble
  thorn tile timber tomato totem tower trout tulip tundra tunnel tusk umber urn vale valley vapor vase
  veil velvet vest violet waffle wagon wand wasp water weasel well wharf wheel whistle widow willow winter
  wizard wonder wool wren yam yard yolk zephyr zinc
`);

/** Words of the pool for choosing settings. */
export const DEVELOPMENT_WORDS: readonly string[] = split(`
  arch banjo banner basin bear blossom bone box bracket brass brook camp candle cane canoe cape cargo
  carol chalk chimney cloud cocoa comet condor copper cork cream creek crest cricket crow crystal diary
  donkey door drift dune ear echo elder envelope ferret field fork frame gear goblet gull harp harvest
  hazel heron horizon iris iron keel kiwi lasso latch laurel ledge llama loom mast meadow mole moss nail
  needle node north nutmeg ocean octopus osprey paddle papaya paper perch pie pilgrim pillow pirate plaza
  plow pocket poem pond potato puffin pumpkin radish raisin road robe saffron salt saucer school seal
  sheep sky snail soup spider spoon table tart tent thistle throne toffee token topaz torch trail train
  trumpet turnip violin walrus wax wick wind window wine wing wolf wombat wood
`);

/** Words of the pools for claiming results. */
export const HELD_OUT_WORDS: readonly string[] = split(`
  album apple apron armor atlas avocado basil beacon bead beaver beetle book boot border bottle boulder
  breeze broom brush bugle bulb bull bunker burrow cabbage cabin camera candy canyon caramel card carpet
  castle cave charcoal charm clay coach coin cone cottage cube curtain dagger dahlia dawn desert diamond
  dome dough dragon duck dusk eagle eel elbow elm fawn fern flask flax fox freight funnel galaxy galleon
  gander garlic garnet ghost glade glove goat grape grass guitar gum hammock heart helmet honey hood
  hornet hotel ivy jar jewel jigsaw ladder lake lamb larch lava lemur lentil lilac lime linen lotus lute
  lynx market marsh meteor moat monkey moth mountain muffin nut oat orbit orchard orchid organ owl palm
  panther paprika paw pelican pen pickle pilot pistachio pixel plank pony pot prism puzzle python quail
  quartz queen rabbit raft rail rain ranch raven rice ring rock rope rose rowan satin scroll seed shawl
  silver skunk sled slug sofa south spark sparrow squash stone stove stream sugar summit syrup talon tango
  tapestry thunder tide tiger tin toad turtle twig urchin vanilla vault vine viola vulture walnut wave
  whale wheat yak yarn yew zebra
`);

function split(text: string): string[] {
  return text.trim().split(/\s+/);
}
